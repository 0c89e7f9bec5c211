//! Our own programs, linked in an order of their own functions.
//!
//! What is committed is the order, so that the same sources give the same bytes wherever they are built; `./x order`
//! makes it anew. The hashes in its names are those of one compiler: another one has few of them, and links as if there
//! were no order. So what was linked is asked how many it has.

use crate::ground;
use crate::target::{self, flag};
use anyhow::{Context, Result};
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::PathBuf;

/// A program of ours that has an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ordered {
    /// Its name.
    pub program: &'static str,
    /// Its package.
    pub package: &'static str,
    /// The profile that it is shipped in.
    pub profile: &'static str,
}

/// The program itself.
pub const PLANISH: Ordered = Ordered { program: "planish", package: "planish-cli", profile: "release" };
/// The engine.
pub const SERIES: Ordered =
    Ordered { program: "planish-series", package: "planish-serve", profile: "engine" };

/// Below this share of the names an order gives next to nothing, and says nothing about what runs now.
const SHARE_LEAST: f64 = 0.8;

/// How many functions of an order a program has.
#[derive(Debug, PartialEq, Eq)]
struct Share {
    there: usize,
    all: usize,
}

impl Share {
    /// Of the names in an order, those in what a linker has written of its work: a symbol is the last word of a line.
    fn of(order: &str, map: &str) -> Self {
        let linked: HashSet<&str> = map.lines().filter_map(|line| line.split_whitespace().last()).collect();
        let names: HashSet<&str> = order.lines().filter(|line| !line.is_empty()).collect();
        Self { there: names.iter().filter(|name| linked.contains(*name)).count(), all: names.len() }
    }

    fn is_enough(&self) -> bool {
        self.there as f64 >= self.all as f64 * SHARE_LEAST
    }
}

impl Ordered {
    /// The committed order.
    pub fn path(self) -> Result<PathBuf> {
        Ok(ground::root()?.join("xtask/orders").join(self.program).with_extension("order"))
    }

    /// Where the linker says what it has linked.
    fn map(self) -> Result<PathBuf> {
        Ok(ground::target_dir()?.join(self.program).with_extension("map"))
    }

    /// The committed order under a name of its contents: Cargo links anew when the words for rustc have changed, and
    /// never looks into the files that they name.
    fn by_contents(self) -> Result<PathBuf> {
        let order = self.path()?;
        let contents = fs::read(&order).with_context(|| format!("read {}", order.display()))?;
        let mut hasher = DefaultHasher::new();
        hasher.write(&contents);
        let folder = ground::target_dir()?.join("orders");
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        let named = folder.join(format!("{}-{:016x}.order", self.program, hasher.finish()));
        fs::write(&named, contents).with_context(|| format!("write {}", named.display()))?;
        Ok(named)
    }

    /// What links in that order: the lld of the toolchain, where it has one.
    pub fn flags(self) -> Result<Vec<OsString>> {
        let order = self.path()?;
        let Some(lld) = lld()? else {
            eprintln!("x: no lld in this toolchain: {} is linked in no order of its own", self.program);
            return Ok(Vec::new());
        };
        if !order.exists() {
            eprintln!("x: no {}: ./x order {} makes it", order.display(), self.program);
            return Ok(Vec::new());
        }
        Ok(vec![
            flag("-Clink-arg=-B", &lld),
            "-Clink-arg=-fuse-ld=lld".into(),
            // Functions of the same bytes once: Rust promises no address to a function, as LLVM merges them as well.
            "-Clink-arg=-Wl,--icf=all".into(),
            // Strings that end others are these ends.
            "-Clink-arg=-Wl,-O2".into(),
            // Names that this build does not have are counted afterwards.
            "-Clink-arg=-Wl,--no-warn-symbol-ordering".into(),
            flag("-Clink-arg=-Wl,--symbol-ordering-file=", &self.by_contents()?),
            "-Clink-arg=-Wl,--no-demangle".into(),
            flag("-Clink-arg=-Wl,-Map=", &self.map()?),
        ])
    }

    /// Says how much of the order the program has that was linked last, and what to do where that is too little.
    pub fn tell(self) -> Result<()> {
        let (order, map) = (self.path()?, self.map()?);
        let (Ok(order), Ok(map)) = (fs::read_to_string(&order), fs::read_to_string(&map)) else {
            // Which was said when it was linked.
            return Ok(());
        };
        let share = Share::of(&order, &map);
        eprintln!("x: {}: {} of the {} functions of its order", self.program, share.there, share.all);
        if !share.is_enough() {
            eprintln!(
                "x: warning: that order is of another compiler or of other sources, and gives little: ./x order {}",
                self.program
            );
        }
        Ok(())
    }
}

/// The folder with the lld of the toolchain, under the names by which a compiler looks for it.
fn lld() -> Result<Option<PathBuf>> {
    let folder = target::tools()?.join("gcc-ld");
    Ok(folder.join("ld.lld").exists().then_some(folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn names_are_counted_once_and_only_where_the_linker_has_them() {
        let map = "             VMA              LMA     Size Align Out     In      Symbol\n\
                   c3a0           c3a0       2f     1                 _ZN4core3fmt17h0E\n\
                   c3d0           c3d0       10     1                 main\n";
        let share = |order| Share::of(order, map);
        assert_eq!(share("main\n_ZN4core3fmt17h0E\nmain\n"), Share { there: 2, all: 2 });
        assert_eq!(share("mai\n_ZN4core3fmt\nmain\n"), Share { there: 1, all: 3 });
        assert!(!share("a\nmain\n").is_enough() && share("main\n").is_enough());
        assert!(Share { there: 4, all: 5 }.is_enough() && !Share { there: 79, all: 100 }.is_enough());
    }

    #[test]
    fn every_order_that_is_committed_is_of_a_program_of_ours() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("orders");
        let known = [PLANISH, SERIES].map(|ordered| format!("{}.order", ordered.program));
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            assert!(known.contains(&name), "{name}");
            let order = fs::read_to_string(entry.path()).unwrap();
            assert!(
                order.lines().count() > 100 && order.lines().all(|line| !line.trim().is_empty()),
                "{name}"
            );
        }
    }
}
