//! A folder of tables, and the engine that queries them: `FOLDER/NAME` is the folder of table NAME.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use planish_arena::{Arena, ArenaError, Growth};
use planish_sql::{Engine, Source, SqlError, View as KeptView, ViewSize};
use planish_table::{Disk, Durable, Follower, Options, Recovery, TableError, TimeUnit, View};

use crate::ddl::{NewTable, drop_view};
use crate::failure::{Failure, Kind, chain};
use crate::views::{self, Texts, ViewsError};

/// Bytes of the name of a table: it is that of a folder.
const NAME_BYTES_MAX: usize = 100;
/// How far pieces of memory grow: who takes the next one waits until it is faulted in.
pub(crate) const GROWTH: Growth = Growth { first_bytes: 2 << 20, cap_bytes: 64 << 20 };
const MANIFEST: &str = "manifest";

/// A table that is open.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) name: String,
    pub(crate) durable: Arc<Durable<'static>>,
    /// What its times count; numbers without one.
    pub(crate) unit: Option<TimeUnit>,
}

/// All tables of a folder.
#[derive(Debug)]
pub(crate) struct Database {
    folder: PathBuf,
    arena: &'static Arena,
    engine: Engine,
    tables: RwLock<BTreeMap<String, Arc<Open>>>,
    /// Tables of another process, which are read alone. Where there are any, there are no others.
    followed: RwLock<BTreeMap<String, Arc<Follower<'static>>>>,
    /// The definitions of views. Who takes this and tables takes tables first.
    views: Mutex<Texts>,
    is_ending: AtomicBool,
}

/// Why a folder of tables cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("cannot read the folder {path}")]
    Folder { path: PathBuf, source: std::io::Error },
    #[error("cannot open the table {name}")]
    Table { name: String, source: TableError },
    #[error("cannot have the views")]
    Views(#[from] ViewsError),
    #[error("cannot have memory for tables")]
    Arena(#[from] ArenaError),
    #[error("cannot start the engine")]
    Engine(#[from] SqlError),
}

impl OpenError {
    /// Whether another process has the folder.
    pub(crate) fn is_in_use(&self) -> bool {
        matches!(self, Self::Table { source: TableError::InUse { .. }, .. })
    }
}

impl Database {
    /// Opens every table of a folder, which is made if it is not there; `tell` hears what was found.
    pub(crate) fn open(
        folder: &Path,
        threads: NonZeroUsize,
        tell: impl FnMut(&str, &Recovery),
    ) -> Result<Self, OpenError> {
        let arena = Arena::builder().growth(GROWTH).build()?;
        Self::open_with(folder, arena, Engine::new(threads)?, tell)
    }

    /// The same with memory and an engine that are there.
    pub(crate) fn open_with(
        folder: &Path,
        arena: Arena,
        engine: Engine,
        mut tell: impl FnMut(&str, &Recovery),
    ) -> Result<Self, OpenError> {
        let database = Self::of(folder, arena, engine);
        std::fs::create_dir_all(folder)
            .map_err(|source| OpenError::Folder { path: folder.into(), source })?;
        for name in database.names()? {
            let failed = |source| OpenError::Table { name: name.clone(), source };
            let disk = Disk::open(&folder.join(&name)).map_err(failed)?;
            let opened = Durable::open(database.arena, Arc::new(disk), &Options::default());
            let (durable, recovery) = opened.map_err(failed)?;
            tell(&name, &recovery);
            database.add(&mut database.change(), name, durable)?;
        }
        *database.texts() = views::read(folder)?;
        Ok(database)
    }

    /// Adds the views whose definitions were found; says which are none any more. They stay defined, until somebody
    /// drops them.
    pub(crate) fn open_views(&self) -> Vec<String> {
        let texts = self.texts().clone();
        texts.iter().filter_map(|(name, text)| self.add_view(name, text).err()).collect()
    }

    fn add_view(&self, name: &str, text: &str) -> Result<(), String> {
        let added = views::plan(&self.engine, text).and_then(|view| Ok(self.engine.add_view(view)?));
        added.map_err(|failure| format!("the view {name} is left out: {failure}"))
    }

    /// No tables and no folder to make some in: for queries of files.
    pub(crate) fn without_folder(threads: NonZeroUsize) -> Result<Self, OpenError> {
        let arena = Arena::builder().growth(GROWTH).build()?;
        Ok(Self::of(Path::new(""), arena, Engine::new(threads)?))
    }

    fn of(folder: &Path, arena: Arena, engine: Engine) -> Self {
        // Tables lend from it for as long as the program runs.
        let arena: &'static Arena = Box::leak(Box::new(arena));
        let (tables, followed, views) = (RwLock::default(), RwLock::default(), Mutex::default());
        let is_ending = AtomicBool::new(false);
        Self { folder: folder.to_owned(), arena, engine, tables, followed, views, is_ending }
    }

    /// Follows the tables of a folder, which another process has, or will have.
    pub(crate) fn follow(folder: &Path, arena: Arena, engine: Engine) -> Result<Self, OpenError> {
        let database = Self::of(folder, arena, engine);
        database.follow_new()?;
        Ok(database)
    }

    /// Takes up the tables that were not there before.
    fn follow_new(&self) -> Result<(), OpenError> {
        for name in self.names()? {
            if self.followed().contains_key(&name) {
                continue;
            }
            let failed = |source| OpenError::Table { name: name.clone(), source };
            let view = Arc::new(View::of(&self.folder.join(&name)));
            let follower = Arc::new(Follower::open(self.arena, view).map_err(failed)?);
            let unit = follower.time_unit();
            self.engine.add(&name, Source::Followed(Arc::clone(&follower)), unit)?;
            self.followed.write().unwrap_or_else(PoisonError::into_inner).insert(name, follower);
        }
        Ok(())
    }

    fn followed(&self) -> RwLockReadGuard<'_, BTreeMap<String, Arc<Follower<'static>>>> {
        self.followed.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on to where the process is that has the tables, and takes up new ones; says what failed.
    pub(crate) fn follow_on(&self) -> Vec<String> {
        let followed = self.followed().clone();
        let refresh = |(name, follower): (String, Arc<Follower<'static>>)| {
            let error = follower.refresh().err()?;
            Some(format!("cannot follow the table {name}: {}", chain(&error)))
        };
        let mut failed: Vec<String> = followed.into_iter().filter_map(refresh).collect();
        failed.extend(self.follow_new().err().map(|error| chain(&error)));
        failed.extend(self.follow_views());
        failed
    }

    /// Has the views that the process has now that has the tables; says what failed.
    pub(crate) fn follow_views(&self) -> Vec<String> {
        let wanted = match views::read(&self.folder) {
            Ok(wanted) => wanted,
            Err(error) => return vec![chain(&error)],
        };
        let mut known = self.texts();
        let gone: Vec<String> = known
            .iter()
            .filter(|(name, text)| wanted.get(*name) != Some(text))
            .map(|it| it.0.clone())
            .collect();
        for name in gone {
            known.remove(&name);
            // There is one, or there was none.
            let _ = self.engine.remove(&name);
        }
        let mut failed = Vec::new();
        for (name, text) in wanted {
            if known.contains_key(&name) {
                continue;
            }
            match self.add_view(&name, &text) {
                Ok(()) => drop(known.insert(name, text)),
                Err(told) => failed.push(told),
            }
        }
        failed
    }

    /// Folders that hold a table.
    #[expect(clippy::disallowed_methods, reason = "lists our own folders, not the host's")]
    fn names(&self) -> Result<Vec<String>, OpenError> {
        let failed = |source| OpenError::Folder { path: self.folder.clone(), source };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            // One without a manifest was being made when its process ended: it has no row, and is none.
            if let (Ok(name), true) = (entry.file_name().into_string(), entry.path().join(MANIFEST).exists())
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn change(&self) -> RwLockWriteGuard<'_, BTreeMap<String, Arc<Open>>> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(
        &self,
        tables: &mut BTreeMap<String, Arc<Open>>,
        name: String,
        durable: Durable<'static>,
    ) -> Result<(), SqlError> {
        let (unit, durable) = (durable.time_unit(), Arc::new(durable));
        self.engine.add(&name, Source::Durable(Arc::clone(&durable)), unit)?;
        tables.insert(name.clone(), Arc::new(Open { name, durable, unit }));
        Ok(())
    }

    /// Makes a table; says whether it was not there before.
    pub(crate) fn create(&self, table: NewTable) -> Result<bool, Failure> {
        let NewTable { name, is_if_not_exists, schema, unit } = table;
        check_name(&name)?;
        // Who makes the same table at the same time waits, and finds it.
        let mut tables = self.change();
        if tables.contains_key(&name) {
            return match is_if_not_exists {
                true => Ok(false),
                false => Err(Failure::new(Kind::TableExists, format!("there is a table {name} already"))),
            };
        }
        if self.texts().contains_key(&name) {
            return Err(Failure::new(Kind::TableExists, format!("{name} is a view already")));
        }
        let disk = Disk::open(&self.folder.join(&name))?;
        let durable = Durable::create(self.arena, Arc::new(disk), schema, Some(unit), &Options::default())?;
        self.add(&mut tables, name, durable)?;
        Ok(true)
    }

    /// Makes or drops a view, by `CREATE MATERIALIZED VIEW` or `DROP MATERIALIZED VIEW`; says whether anything was
    /// changed. Afterwards it is on the disk.
    pub(crate) fn change_view(&self, sql: &str) -> Result<bool, Failure> {
        match crate::statement::first_word(sql).as_str() {
            "DROP" => self.drop_view(sql),
            _ => self.create_view(sql),
        }
    }

    fn create_view(&self, sql: &str) -> Result<bool, Failure> {
        let view = views::plan(&self.engine, sql)?;
        let (name, text) = (view.definition().name().to_owned(), view.definition().text().to_owned());
        check_name(&name)?;
        // Nobody makes a table of this name meanwhile.
        let tables = self.change();
        let mut texts = self.texts();
        let is_there = texts.contains_key(&name);
        if is_there && view.definition().is_if_not_exists() {
            return Ok(false);
        }
        if is_there || tables.contains_key(&name) {
            let what = if is_there { "view" } else { "table" };
            return Err(Failure::new(Kind::TableExists, format!("there is a {what} {name} already")));
        }
        let mut next = texts.clone();
        next.insert(name, text);
        views::write(&self.folder, &next)?;
        *texts = next;
        self.engine.add_view(view)?;
        Ok(true)
    }

    fn drop_view(&self, sql: &str) -> Result<bool, Failure> {
        let (name, is_if_exists) = drop_view(sql).map_err(|what| Failure::new(Kind::Syntax, what))?;
        let mut texts = self.texts();
        let mut next = texts.clone();
        if next.remove(&name).is_none() {
            return match is_if_exists {
                true => Ok(false),
                false => Err(Failure::new(Kind::UnknownTable, format!("no view {name}"))),
            };
        }
        views::write(&self.folder, &next)?;
        *texts = next;
        // One that was left out is not there.
        self.engine.remove(&name)?;
        Ok(true)
    }

    fn texts(&self) -> MutexGuard<'_, Texts> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has [`refresh_views`](Self::refresh_views) come to its end soon.
    pub(crate) fn end_views(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }

    /// Makes the bars of views those of now; says what failed.
    pub(crate) fn refresh_views(&self) -> Vec<String> {
        let refresh = |view: Arc<KeptView>| {
            let error = view.refresh(|| self.is_ending.load(Ordering::Relaxed)).err()?;
            Some(format!("cannot keep the view {}: {}", view.definition().name(), chain(&error)))
        };
        self.engine.views().into_iter().filter_map(refresh).collect()
    }

    /// How many views there are, and what all of them hold.
    pub(crate) fn view_sizes(&self) -> (usize, ViewSize) {
        let views = self.engine.views();
        let add = |all: ViewSize, one: ViewSize| ViewSize {
            bars: all.bars + one.bars,
            bytes: all.bytes + one.bytes,
            rows_read: all.rows_read + one.rows_read,
        };
        (views.len(), views.iter().map(|view| view.size()).fold(ViewSize::default(), add))
    }

    /// A table by its name.
    pub(crate) fn table(&self, name: &str) -> Result<Arc<Open>, Failure> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        let table = tables.get(name).cloned();
        table.ok_or_else(|| match self.texts().contains_key(name) {
            true => {
                let text = format!("{name} is a view: rows go to its table");
                Failure::new(Kind::BadArguments, text)
            }
            false => Failure::new(Kind::UnknownTable, format!("no table {name}")),
        })
    }

    /// All of them, by name.
    pub(crate) fn tables(&self) -> Vec<Arc<Open>> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// How many there are, those of others among them; never fewer than before.
    pub(crate) fn count(&self) -> usize {
        let followed = self.followed().len();
        self.tables.read().unwrap_or_else(PoisonError::into_inner).len() + followed
    }

    /// What queries them.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Bytes of memory that rows take.
    pub(crate) fn used_bytes(&self) -> usize {
        self.arena.used_bytes()
    }

    /// Where rows lie.
    pub(crate) fn arena(&self) -> &'static Arena {
        self.arena
    }

    /// Writes all rows to files and lets go of their memory; says what failed.
    pub(crate) fn flush(&self) -> Vec<String> {
        let flush = |table: Arc<Open>| {
            let error = table.durable.flush(i64::MAX).err()?;
            Some(format!("cannot flush the table {}: {}", table.name, chain(&error)))
        };
        self.tables().into_iter().filter_map(flush).collect()
    }
}

/// A name is that of a folder, and no way out of ours.
fn check_name(name: &str) -> Result<(), Failure> {
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_name && !name.is_empty() && name.len() <= NAME_BYTES_MAX {
        return Ok(());
    }
    let text = format!("{name:?} is no name of a table: letters, digits and _, {NAME_BYTES_MAX} at most");
    Err(Failure::new(Kind::BadArguments, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ddl::create_table;

    fn open(folder: &Path) -> Result<(Database, Vec<String>), OpenError> {
        let mut found = Vec::new();
        let database = Database::open(folder, NonZeroUsize::MIN, |name, _| found.push(name.to_owned()))?;
        Ok((database, found))
    }

    #[test]
    fn tables_are_there_again_with_their_units() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let (database, found) = open(&data).unwrap();
        assert!(found.is_empty());
        let new = create_table("CREATE TABLE t (at TIMESTAMP(3), n INT)").unwrap();
        assert_eq!(database.create(new.clone()), Ok(true));
        assert_eq!(database.create(new.clone()).unwrap_err().kind, Kind::TableExists);
        assert_eq!(database.create(NewTable { is_if_not_exists: true, ..new }), Ok(false));
        assert!(open(&data).unwrap_err().is_in_use());
        drop(database);
        // What a kill leaves behind of a table that was being made.
        std::fs::create_dir(data.join("half")).unwrap();
        let (database, found) = open(&data).unwrap();
        assert_eq!(found, ["t"]);
        assert_eq!(database.table("t").unwrap().unit, Some(TimeUnit::Milliseconds));
        assert_eq!(database.table("half").unwrap_err().kind, Kind::UnknownTable);
        let half = create_table("CREATE TABLE half (at TIMESTAMP(9))").unwrap();
        assert_eq!(database.create(half), Ok(true));
    }

    #[test]
    fn a_name_is_no_way_out_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (database, _) = open(&folder.path().join("data")).unwrap();
        for name in ["../t", "a/b", "", ".", "é", &"x".repeat(101)] {
            let new = create_table(&format!("CREATE TABLE \"{name}\" (at TIMESTAMP)")).unwrap();
            assert_eq!(database.create(new).unwrap_err().kind, Kind::BadArguments, "{name}");
        }
        assert!(!folder.path().join("t").exists());
    }
}
