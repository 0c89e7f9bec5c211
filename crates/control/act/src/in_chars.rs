//! A file of the host that is no UTF-8, for whoever takes lines of ours out of it: those of others stay, byte by byte.
//!
//! Such a file is never made by planish. Somebody wrote a comment in another encoding into one that it has lines in,
//! and they must go by an undo all the same. Each byte is a character meanwhile ([`planish_host::bytes`]).

use std::io;
use std::time::Duration;

use planish_host::{Host, bytes};
use planish_model::{EntryStep, Generator, Holder, Outcome};

use crate::error::{Operation, SinkError};
use crate::program::Programs;
use crate::relocate::Processes;
use crate::sink::Sink;

/// A sink in which one file has a character for each byte. Texts that are compared with it must be made so, too.
pub struct InChars<'a> {
    inner: &'a dyn Sink,
    path: &'a str,
}

impl<'a> InChars<'a> {
    /// Of a file that is there and is no UTF-8; `None` for every other one.
    #[must_use]
    pub fn of(path: &'a str, inner: &'a dyn Sink) -> Option<Self> {
        let bytes = inner.read_bytes(path).ok()??;
        str::from_utf8(&bytes).is_err().then_some(Self { inner, path })
    }

    /// What is written to a file, of the text that it is given.
    fn bytes(&self, path: &str, content: &[u8]) -> Result<Vec<u8>, SinkError> {
        if path != self.path {
            return Ok(content.to_owned());
        }
        let bytes = str::from_utf8(content).ok().and_then(bytes::from_chars);
        bytes.ok_or_else(|| SinkError::new(Operation::Replace, path, io::ErrorKind::InvalidData.into()))
    }
}

/// A step whose texts of the file are as [`InChars`] has them.
#[must_use]
pub fn step_in_chars(step: &EntryStep) -> EntryStep {
    let mut step = step.clone();
    step.wanted = text_in_chars(&step.wanted);
    for original in &mut step.originals {
        original.value = text_in_chars(&original.value);
    }
    step
}

/// A text as [`InChars`] has it.
#[must_use]
pub fn text_in_chars(text: &str) -> String {
    bytes::to_chars(text.as_bytes())
}

/// An outcome as it is told and kept: a text that is no UTF-8 is none that planish left.
#[must_use]
pub fn told_of_chars(outcome: Outcome) -> Outcome {
    let text = |text: String| bytes::from_chars(&text).and_then(|bytes| String::from_utf8(bytes).ok());
    let detail = outcome.detail.as_deref().map(bytes::shown);
    Outcome { read_back: outcome.read_back.and_then(text), detail, ..outcome }
}

impl Sink for InChars<'_> {
    fn read(&self, place: &str) -> Result<String, SinkError> {
        self.inner.read(place)
    }

    fn write(&self, place: &str, value: &str) -> Result<(), SinkError> {
        self.inner.write(place, value)
    }

    fn read_bytes(&self, path: &str) -> Result<Option<Vec<u8>>, SinkError> {
        self.inner.read_bytes(path)
    }

    fn read_file(&self, path: &str) -> Result<Option<String>, SinkError> {
        if path != self.path {
            return self.inner.read_file(path);
        }
        Ok(self.inner.read_bytes(path)?.map(|bytes| bytes::to_chars(&bytes)))
    }

    fn link(&self, path: &str) -> Result<Option<String>, SinkError> {
        self.inner.link(path)
    }

    fn replace_file(&self, path: &str, content: Option<&[u8]>) -> Result<(), SinkError> {
        let content = content.map(|content| self.bytes(path, content)).transpose()?;
        self.inner.replace_file(path, content.as_deref())
    }

    fn remove_folder(&self, path: &str) -> Result<(), SinkError> {
        self.inner.remove_folder(path)
    }

    fn edit_file(&self, path: &str, content: &[u8]) -> Result<(), SinkError> {
        self.inner.edit_file(path, &self.bytes(path, content)?)
    }

    fn sweep(&self, path: &str, is_edited: bool) -> Result<(), SinkError> {
        self.inner.sweep(path, is_edited)
    }

    fn read_variable(&self, path: &str) -> Result<Option<String>, SinkError> {
        self.inner.read_variable(path)
    }

    fn set_variable(&self, path: &str, name: Option<&str>) -> Result<(), SinkError> {
        self.inner.set_variable(path, name)
    }

    fn generate(&self, generator: Generator) -> Result<bool, SinkError> {
        self.inner.generate(generator)
    }

    fn pause(&self, time: Duration) {
        self.inner.pause(time);
    }

    fn page_bytes(&self) -> u64 {
        self.inner.page_bytes()
    }

    fn holders(&self, page_bytes: u64) -> Vec<Holder> {
        self.inner.holders(page_bytes)
    }

    fn processes(&self) -> Option<Box<dyn Processes + '_>> {
        self.inner.processes()
    }

    fn programs<'p>(&'p self, host: &'p Host) -> Option<Box<dyn Programs + 'p>> {
        self.inner.programs(host)
    }
}
