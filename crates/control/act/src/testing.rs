//! A kernel in memory for the tests of this crate: twins, derived values, pools that grant less.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use planish_model::{Class, Coupling, EntryStep, Generator, Holder, KnobId, Original, Undo, ValueType};
use rustix::io::Errno;

use crate::error::{Operation, SinkError};
use crate::sink::Sink;

/// What makes a menu of the files of a kernel.
type MakesMenu = fn(&Kernel) -> Result<String, Errno>;

/// Places in memory.
#[derive(Default)]
pub(crate) struct Kernel {
    pub places: RefCell<BTreeMap<String, String>>,
    /// Links with the names of files of ours, and where they lead.
    pub links: RefCell<BTreeMap<String, String>>,
    /// Places that answer a write with an error.
    pub refuses: BTreeMap<&'static str, Errno>,
    /// Writing the first sets the second to this text: twins and derived values.
    pub also: Vec<(&'static str, &'static str, &'static str)>,
    /// Pages that a pool grants at each write, and no more.
    pub grant: Cell<Option<u64>>,
    /// Done by someone else just before the n-th pause ends.
    pub meanwhile: Cell<Option<(&'static str, &'static str)>>,
    pub holders: Vec<Holder>,
    /// Makes the menu of a boot loader from its sources.
    pub menu: Option<MakesMenu>,
    pub writes: RefCell<Vec<(String, String)>>,
}

impl Kernel {
    pub fn new(places: &[(&str, &str)]) -> Self {
        let kernel = Self::default();
        places.iter().for_each(|(place, value)| kernel.put(place, value));
        kernel
    }

    pub fn put(&self, place: &str, value: &str) {
        self.places.borrow_mut().insert(place.to_owned(), value.to_owned());
    }

    pub fn get(&self, place: &str) -> String {
        self.places.borrow().get(place).cloned().unwrap_or_default()
    }

    fn failed(operation: Operation, place: &str, errno: Errno) -> SinkError {
        SinkError::new(operation, place, io::Error::from(errno))
    }
}

impl Sink for Kernel {
    fn read(&self, place: &str) -> Result<String, SinkError> {
        let places = self.places.borrow();
        places.get(place).cloned().ok_or_else(|| Self::failed(Operation::Read, place, Errno::NOENT))
    }

    fn write(&self, place: &str, value: &str) -> Result<(), SinkError> {
        if let Some(errno) = self.refuses.get(place) {
            return Err(Self::failed(Operation::Write, place, *errno));
        }
        let before = self.read(place).map_err(|error| SinkError { operation: Operation::Write, ..error })?;
        self.writes.borrow_mut().push((place.to_owned(), value.to_owned()));
        let mut value = value.to_owned();
        if let (Some(grant), true) = (self.grant.get(), place.ends_with("nr_hugepages")) {
            let (from, to): (u64, u64) = (before.parse().expect("pages"), value.parse().expect("pages"));
            value = to.min(from + grant).to_string();
        }
        self.put(place, &value);
        for (_, other, text) in self.also.iter().filter(|(trigger, ..)| *trigger == place) {
            self.put(other, text);
        }
        Ok(())
    }

    fn read_bytes(&self, path: &str) -> Result<Option<Vec<u8>>, SinkError> {
        Ok(self.places.borrow().get(path).cloned().map(String::into_bytes))
    }

    fn link(&self, path: &str) -> Result<Option<String>, SinkError> {
        Ok(self.links.borrow().get(path).cloned())
    }

    fn replace_file(&self, path: &str, content: Option<&[u8]>) -> Result<(), SinkError> {
        self.links.borrow_mut().remove(path);
        match content {
            Some(content) => self.put(path, str::from_utf8(content).expect("text")),
            None => drop(self.places.borrow_mut().remove(path)),
        }
        Ok(())
    }

    fn remove_folder(&self, _: &str) -> Result<(), SinkError> {
        Ok(())
    }

    fn edit_file(&self, path: &str, content: &[u8]) -> Result<(), SinkError> {
        self.read(path)?;
        self.put(path, str::from_utf8(content).expect("text"));
        Ok(())
    }

    fn sweep(&self, _: &str, _: bool) -> Result<(), SinkError> {
        Ok(())
    }

    fn read_variable(&self, path: &str) -> Result<Option<String>, SinkError> {
        Ok(self.places.borrow().get(path).cloned())
    }

    fn set_variable(&self, path: &str, name: Option<&str>) -> Result<(), SinkError> {
        self.replace_file(path, name.map(str::as_bytes))
    }

    fn generate(&self, generator: Generator) -> Result<bool, SinkError> {
        match &self.menu {
            None => Ok(false),
            Some(make) => {
                let text = make(self).map_err(|errno| Self::failed(Operation::Generate, "menu", errno))?;
                self.put(generator.output(), &text);
                Ok(true)
            }
        }
    }

    fn pause(&self, _: Duration) {
        if let Some((place, value)) = self.meanwhile.take() {
            self.put(place, value);
        }
    }

    fn page_bytes(&self) -> u64 {
        4096
    }

    fn holders(&self, _: u64) -> Vec<Holder> {
        self.holders.clone()
    }
}

pub(crate) fn int() -> ValueType {
    ValueType::Int { int: "none".to_owned(), min: None, max: None, words: Vec::new() }
}

pub(crate) fn original(place: &str, value: &str, coupling: Option<Coupling>) -> Original {
    let knob = KnobId::new(place.trim_start_matches('/').replace('/', "."));
    Original { knob, place: place.to_owned(), r#type: int(), value: value.to_owned(), coupling, over: None }
}

pub(crate) fn step(place: &str, from: &str, wanted: &str) -> EntryStep {
    let own = original(place, from, None);
    EntryStep {
        knob: own.knob.clone(),
        place: place.to_owned(),
        wanted: wanted.to_owned(),
        class: Class::Safe,
        undo: Undo::Restore,
        raise_pages: None,
        takes_pages: None,
        in_all: None,
        others: Default::default(),
        line: None,
        there: None,
        lowered_behind: None,
        part: None,
        service: None,
        originals: vec![own],
        folders: Vec::new(),
        pools: Vec::new(),
        rules: Vec::new(),
        device: None,
        generator: None,
        outcome: None,
        begun: None,
        last_boot: None,
        last_entry: None,
        undone: None,
    }
}

pub(crate) fn pool_step(place: &str, pages: u64, raise: u64) -> EntryStep {
    EntryStep {
        undo: Undo::Subtract,
        raise_pages: Some(raise),
        takes_pages: None,
        in_all: None,
        others: Default::default(),
        line: None,
        there: None,
        lowered_behind: None,
        part: None,
        service: None,
        ..step(place, &pages.to_string(), &(pages + raise).to_string())
    }
}
