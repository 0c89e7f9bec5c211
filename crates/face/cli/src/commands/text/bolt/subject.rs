//! The program, and why BOLT could not rewrite it: told before anything is run, with the flag that mends it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use planish_profile::{Allows, FileKind, Program, Rewritable, Rewritten};
use planish_report::TextBoltFile;
use planish_sys::pages;

use super::Args;
use crate::commands::read_file;
use crate::commands::text::in_file;
use crate::context::Context;
use crate::failure::Failure;

/// Set-user-id and set-group-id.
const SET_ID: u32 = 0o6000;

/// The program that is to be rewritten.
pub(super) struct Subject {
    /// Once all links are followed.
    pub path: PathBuf,
    pub metadata: Metadata,
    pub bytes: Vec<u8>,
    pub program: Program,
    pub found: Rewritable,
    /// The functions that the user wants left alone.
    pub skipped: Vec<u32>,
}

impl Subject {
    pub fn look(args: &Args, context: &Context) -> Result<Self, Failure> {
        let bytes = read_file(&args.program)?;
        let named = |source| in_file(&args.program, source);
        let unread = |error| Failure::usage(format!("cannot look at {}: {error}", args.program.display()));
        let path = std::fs::canonicalize(&args.program).map_err(unread)?;
        let metadata = std::fs::metadata(&path).map_err(unread)?;
        let program = Program::parse(&path.to_string_lossy(), &bytes).map_err(named)?;
        let found = Rewritable::parse(&bytes, &program).map_err(named)?;
        let mut subject = Self { path, metadata, bytes, program, found, skipped: Vec::new() };
        subject.refuse(args, context)?;
        let skipped: Result<_, Failure> = args.skip_funcs.iter().map(|name| subject.function(name)).collect();
        subject.skipped = skipped?;
        Ok(subject)
    }

    /// Refuses what BOLT cannot rewrite, or should not.
    fn refuse(&self, args: &Args, context: &Context) -> Result<(), Failure> {
        let named = args.program.display();
        let check = context.line(&format!("text check {named}"));
        let refused = |why: &str, cure: &str| Err(Failure::refused(format!("{named} {why}")).hint(cure));
        match self.found.rewritten {
            Some(Rewritten::LaidOut) => {
                return refused(
                    "was laid out by BOLT already",
                    "name the program as it was linked: profiles of a layout do not fit it",
                );
            }
            Some(Rewritten::Instrumented) => {
                return refused("is instrumented", "name the program that it was made from");
            }
            None => {}
        }
        if self.found.kind == FileKind::Object {
            return refused("is an object file", "name what it is linked to");
        }
        if !self.found.is_for_known_cpu() {
            return refused("is for another CPU than x86-64 and 64-bit Arm", "build it for one of them");
        }
        if self.found.symbols == 0 {
            return refused(
                "is stripped: BOLT finds no functions in it",
                "link without -s, or name the file before strip; strip what BOLT has made",
            );
        }
        if !self.found.relocations {
            let refused = refused(
                "has no relocations: they were dropped, and BOLT cannot move functions",
                "link with -Wl,--emit-relocs (short: -Wl,-q)",
            );
            return refused.map_err(|failure: Failure| failure.hint(check));
        }
        if self.found.is_static && args.each_process {
            return refused("is static, and counts by time alone", "leave --each-process out");
        }
        Ok(())
    }

    /// Sizes and name of the build.
    pub fn file(&self) -> TextBoltFile {
        file(&self.bytes, &self.program)
    }

    /// The function that a name of the command line means.
    fn function(&self, name: &str) -> Result<u32, Failure> {
        self.program.by_name(name).ok_or_else(|| {
            Failure::usage(format!("{} has no function {name}", self.path.display()))
                .hint(format!("name one as the linker does: nm {}", self.path.display()))
        })
    }

    /// Whether a file that is made by somebody would run as somebody else.
    pub fn is_set_id(&self) -> bool {
        self.metadata.mode() & SET_ID != 0
    }

    pub fn notes(&self) -> impl Iterator<Item = String> {
        let parts = (self.found.cold_parts > 0).then(|| {
            let count = self.found.cold_parts;
            let are = if count == 1 { "part of a function is" } else { "parts of functions are" };
            format!(
                "{count} {are} set apart by the compiler: -fno-reorder-blocks-and-partition leaves more to BOLT"
            )
        });
        parts.into_iter()
    }
}

/// Sizes and name of the build of a file.
pub(super) fn file(bytes: &[u8], program: &Program) -> TextBoltFile {
    let huge_bytes = pages::thp_bytes().and_then(|bytes| u64::try_from(bytes).ok());
    let allows = Allows::parse(bytes, huge_bytes.unwrap_or(1 << 21)).ok();
    TextBoltFile {
        bytes: bytes.len() as u64,
        text_bytes: allows.as_ref().map_or(0, |allows| allows.text_bytes),
        whole_bytes: huge_bytes.and(allows.as_ref().map(|allows| allows.whole_bytes)),
        build_id: program.build_id.clone(),
    }
}

/// Whether both are one file.
pub(super) fn is_same_file(left: &Metadata, right: &Path) -> bool {
    std::fs::metadata(right).is_ok_and(|right| (left.dev(), left.ino()) == (right.dev(), right.ino()))
}
