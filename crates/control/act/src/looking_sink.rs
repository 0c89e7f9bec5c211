//! Looks at a host for what a write would come to, and writes nothing: for every recorded host, and for every user.

use std::io;
use std::path::Path;
use std::time::Duration;

use planish_host::Host;
use planish_model::{Generator, Holder};

use crate::error::{Operation, Refusal, SinkError};
use crate::holders;
use crate::model_sink::text;
use crate::sink::{Sink, own_link, read_own, variable};

/// A host that is only read. Each write is refused.
#[derive(Clone, Copy, Debug)]
pub struct LookingSink<'a> {
    host: &'a Host,
}

impl<'a> LookingSink<'a> {
    /// Of any host, whether or not it may be written.
    #[must_use]
    pub fn new(host: &'a Host) -> Self {
        Self { host }
    }
}

/// What every write comes to.
fn refused<T>(operation: Operation, place: &str) -> Result<T, SinkError> {
    let source = io::Error::new(io::ErrorKind::PermissionDenied, "nothing is written by a look");
    Err(SinkError { operation, place: place.to_owned(), refusal: Refusal::NotPermitted, source })
}

impl Sink for LookingSink<'_> {
    fn read(&self, place: &str) -> Result<String, SinkError> {
        text(self.host, place).map_err(|error| SinkError::new(Operation::Read, place, error))
    }

    fn write(&self, place: &str, _: &str) -> Result<(), SinkError> {
        refused(Operation::Write, place)
    }

    fn read_bytes(&self, path: &str) -> Result<Option<Vec<u8>>, SinkError> {
        read_own(self.host.folder().unwrap_or(Path::new("/")), path)
    }

    fn link(&self, path: &str) -> Result<Option<String>, SinkError> {
        own_link(self.host.folder().unwrap_or(Path::new("/")), path)
    }

    fn replace_file(&self, path: &str, _: Option<&[u8]>) -> Result<(), SinkError> {
        refused(Operation::Replace, path)
    }

    fn remove_folder(&self, path: &str) -> Result<(), SinkError> {
        refused(Operation::Replace, path)
    }

    fn edit_file(&self, path: &str, _: &[u8]) -> Result<(), SinkError> {
        refused(Operation::Replace, path)
    }

    fn sweep(&self, path: &str, _: bool) -> Result<(), SinkError> {
        refused(Operation::Replace, path)
    }

    fn read_variable(&self, path: &str) -> Result<Option<String>, SinkError> {
        let real = self.host.real_path(path);
        variable::read(&real.map_err(|error| SinkError::new(Operation::Read, path, error))?, path)
    }

    fn set_variable(&self, path: &str, _: Option<&str>) -> Result<(), SinkError> {
        refused(Operation::Write, path)
    }

    fn generate(&self, generator: Generator) -> Result<bool, SinkError> {
        refused(Operation::Generate, generator.program())
    }

    fn pause(&self, _: Duration) {}

    fn page_bytes(&self) -> u64 {
        self.host.page_bytes()
    }

    fn holders(&self, page_bytes: u64) -> Vec<Holder> {
        holders::of(self.host, page_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::variable::ONCE_VARIABLE;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "makes a recorded host and looks at it")]
    fn it_reads_what_nobody_may_write_and_writes_nothing() {
        use std::fs;
        let root = tempfile::tempdir().expect("a folder");
        let (conf, place) = ("/etc/sysctl.d/x.conf", "/proc/sys/vm/swappiness");
        let meta = [planish_skip::MACHINE, "name = \"model\"\n"].concat();
        for (path, text) in [("/meta.toml", meta.as_str()), (conf, "a = 1\n"), (place, "60\n")] {
            let path = root.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
            fs::write(path, text).expect("ours");
        }
        let host = Host::open(root.path()).expect("a recorded host");
        let sink = LookingSink::new(&host);
        assert_eq!(sink.read(place).expect("readable"), "60");
        assert_eq!(sink.read_file(conf).expect("readable").as_deref(), Some("a = 1\n"));
        assert_eq!(sink.read_file("/etc/none").expect("none"), None);
        let refused = [
            sink.write(place, "5"),
            sink.replace_file(conf, None),
            sink.replace_file("/etc/sysctl.d/y.conf", Some(b"b = 2\n")),
            sink.edit_file(conf, b"b = 2\n"),
            sink.sweep(conf, false),
            sink.remove_folder("/etc/sysctl.d"),
            sink.generate(Generator::UpdateGrub).map(drop),
            sink.set_variable(ONCE_VARIABLE, Some("a.conf")),
        ];
        for answer in refused {
            assert_eq!(answer.expect_err("it only looks").refusal, Refusal::NotPermitted);
        }
        assert_eq!(sink.read(place).expect("readable"), "60");
        assert_eq!(fs::read_dir(root.path().join("etc/sysctl.d")).expect("a folder").count(), 1);
    }
}
