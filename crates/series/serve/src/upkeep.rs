//! What a server does for its tables without being asked: rows go to files when they take too much memory, and tables
//! of another process are followed.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::database::Database;

/// How often it looks.
const PERIOD: Duration = Duration::from_millis(200);
/// How often it makes the bars of views those of now: queries make up for the rest.
const VIEW_PERIOD: Duration = Duration::from_secs(1);
/// How often it looks at tables of another process.
const FOLLOW_PERIOD: Duration = Duration::from_millis(100);
/// How often it tells of what fails.
const TELL_PERIOD: Duration = Duration::from_secs(60);

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Upkeep {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Upkeep {
    /// Looks after a database, whose rows may take so many bytes of memory; `tell` hears what fails.
    ///
    /// # Errors
    /// When there can be no thread.
    pub(crate) fn start(
        database: Arc<Database>,
        memory_bytes: usize,
        tell: impl Fn(&str) + Send + 'static,
    ) -> std::io::Result<Self> {
        let flush = move || match database.used_bytes() > memory_bytes {
            true => database.flush(),
            false => Vec::new(),
        };
        Self::each("upkeep", PERIOD, flush, tell)
    }

    /// Keeps the views of a database, so that a query has little to make anew. It begins at once: what the table has is
    /// read once after a start.
    ///
    /// # Errors
    /// When there can be no thread.
    pub(crate) fn views(
        database: Arc<Database>,
        tell: impl Fn(&str) + Send + 'static,
    ) -> std::io::Result<Self> {
        Self::each("views", VIEW_PERIOD, move || database.refresh_views(), tell)
    }

    /// Goes on with tables of another process, so that a query has little to catch up with.
    ///
    /// # Errors
    /// When there can be no thread.
    pub(crate) fn follow(
        database: Arc<Database>,
        tell: impl Fn(&str) + Send + 'static,
    ) -> std::io::Result<Self> {
        Self::each("follow", FOLLOW_PERIOD, move || database.follow_on(), tell)
    }

    /// Does some work again and again; `tell` hears what failed of it, and not too often.
    fn each(
        name: &str,
        period: Duration,
        work: impl Fn() -> Vec<String> + Send + 'static,
        tell: impl Fn(&str) + Send + 'static,
    ) -> std::io::Result<Self> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let stopped = Arc::clone(&stop);
        let mut told: Option<Instant> = None;
        let work = move || {
            loop {
                let guard = stopped.0.lock().unwrap_or_else(PoisonError::into_inner);
                let waited = stopped.1.wait_timeout_while(guard, period, |is_stopped| !*is_stopped);
                if *waited.unwrap_or_else(PoisonError::into_inner).0 {
                    return;
                }
                let failed = work();
                if !failed.is_empty() && told.is_none_or(|told| told.elapsed() > TELL_PERIOD) {
                    told = Some(Instant::now());
                    failed.iter().for_each(|line| tell(line));
                }
            }
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        *self.stop.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic there was told there.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use planish_ingest::{Header, Options};

    use super::*;
    use crate::ddl::create_table;
    use crate::intake::{Input, Intake};

    #[test]
    fn rows_that_take_too_much_memory_go_to_files() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(folder.path(), NonZeroUsize::MIN, |_, _| {}).unwrap();
        database.create(create_table("CREATE TABLE t (at TIMESTAMP, n INT)").unwrap()).unwrap();
        let tables = database.tables();
        let input = Input::Csv { header: Header::First, delimiter: b',' };
        let mut intake = Intake::new(&tables, &input, Options::default(), false);
        intake.feed(b"at,n\n1,1\n2,2\n").unwrap();
        assert_eq!(intake.finish().unwrap().taken.rows, 2);
        let files = || tables[0].durable.read().unwrap().files().len();
        let database = Arc::new(database);
        assert!(files() == 0 && database.used_bytes() > 0);
        let upkeep = Upkeep::start(Arc::clone(&database), 0, |told| panic!("{told}")).unwrap();
        let began = Instant::now();
        while files() == 0 {
            assert!(began.elapsed() < Duration::from_secs(20), "nothing was flushed");
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(upkeep);
        // Nobody but this test has the database any more.
        assert!(Arc::into_inner(database).is_some());
    }
}
