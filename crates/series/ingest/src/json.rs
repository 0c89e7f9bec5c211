//! JSON: an object a row, one a line, or as ClickHouse's clients send JSONEachRow: blanks, commas or nothing between
//! them, and brackets around them or not.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{DeserializeSeed, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::Decoder;
use crate::cell::Form;
use crate::error::{IngestError, What};
use crate::intake::{Intake, Options, Outcome};
use crate::place::Place;
use crate::sink::Sink;
use crate::target::Target;

/// Decodes objects of JSON: fields by the names of their columns, `null` is none.
///
/// An object that is broken ends at a line feed in a text, which JSON does not have, or before a brace that begins a
/// line: so one of them does not take the next ones with it.
#[derive(Debug)]
pub struct JsonDecoder {
    intake: Intake,
    place: Place,
    /// The beginning of an object whose end did not come yet, and what was seen of it.
    begun: Vec<u8>,
    end: ObjectEnd,
    /// The object was too long, and is left out.
    is_dropping: bool,
}

/// What was seen of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct ObjectEnd {
    state: State,
    /// Braces and brackets that are open.
    depth: usize,
    /// The last byte was a line feed.
    is_line: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// In front of it.
    #[default]
    Before,
    /// Something that is no object.
    Other,
    Inside,
    Text,
    TextEscape,
}

impl ObjectEnd {
    /// Looks at more bytes; says how many of them belong to the object that ends there.
    fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        for (index, &byte) in bytes.iter().enumerate() {
            let is_line = std::mem::replace(&mut self.is_line, byte == b'\n');
            match (self.state, byte) {
                (State::Before, b'{') => (self.state, self.depth) = (State::Inside, 1),
                (State::Before, _) => self.state = State::Other,
                (State::Other | State::Text | State::TextEscape, b'\n') => return Some(index),
                (State::Inside, b'{') if is_line => return Some(index),
                (State::Inside, b'{' | b'[') => self.depth += 1,
                (State::Inside, b'}' | b']') => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(index + 1);
                    }
                }
                (State::Inside, b'"') => self.state = State::Text,
                (State::Text, b'"') => self.state = State::Inside,
                (State::TextEscape, _) => self.state = State::Text,
                (State::Text, b'\\') => self.state = State::TextEscape,
                _ => {}
            }
        }
        None
    }
}

impl JsonDecoder {
    /// For a table.
    #[must_use]
    pub fn new(target: Target, options: Options) -> Self {
        Self {
            intake: Intake::new(vec![target], options),
            place: Place::default(),
            begun: Vec::new(),
            end: ObjectEnd::default(),
            is_dropping: false,
        }
    }

    /// Takes in an object, or something else in its place.
    fn object(&mut self, object: &[u8], sink: &mut dyn Sink) -> Result<(), IngestError> {
        let place = self.place;
        self.place.pass(object);
        self.intake.begin(0);
        match row(object, &mut self.intake) {
            Ok(()) => match self.intake.commit(place.line) {
                Ok(()) => self.intake.cut(sink),
                Err(what) => self.intake.fault(place.fault(object, 0, what)),
            },
            Err((at, what)) => {
                self.intake.cancel();
                self.intake.fault(place.fault(object, at, what))
            }
        }
    }

    /// Goes on with an object, or begins one; what is behind it.
    fn go_on<'b>(&mut self, bytes: &'b [u8], sink: &mut dyn Sink) -> Result<&'b [u8], IngestError> {
        let end = self.end.find(bytes);
        let (piece, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        let limit = self.intake.options.line_bytes_max;
        if self.is_dropping {
            self.place.pass(piece);
        } else if self.begun.len() + piece.len() > limit {
            let fault = self.place.fault(&self.begun, 0, What::TooLong { limit });
            self.place.pass(&std::mem::take(&mut self.begun));
            self.place.pass(piece);
            self.is_dropping = true;
            self.intake.fault(fault)?;
        } else if end.is_some() && self.begun.is_empty() {
            self.object(piece, sink)?;
        } else {
            self.begun.extend_from_slice(piece);
            if end.is_some() {
                let begun = std::mem::take(&mut self.begun);
                self.object(&begun, sink)?;
                self.begun = begun;
                self.begun.clear();
            }
        }
        if end.is_some() {
            (self.end, self.is_dropping) = (ObjectEnd::default(), false);
        }
        Ok(rest)
    }
}

impl Decoder for JsonDecoder {
    fn arrived(&mut self, ns: Option<i64>) {
        self.intake.arrived = ns;
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<(), IngestError> {
        self.intake.is_open()?;
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.end == ObjectEnd::default() {
                let between = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',' | b'[' | b']');
                let count = rest.iter().take_while(between).count();
                self.place.pass(&rest[..count]);
                rest = &rest[count..];
                if rest.is_empty() {
                    break;
                }
            }
            rest = self.go_on(rest, sink)?;
        }
        Ok(())
    }

    fn flush(&mut self, sink: &mut dyn Sink) -> Result<(), IngestError> {
        self.intake.flush(sink)
    }

    fn finish(&mut self, sink: &mut dyn Sink) -> Result<Outcome, IngestError> {
        self.intake.is_open()?;
        if !self.begun.is_empty() {
            let fault = self.place.fault(&self.begun, 0, What::Ended);
            self.begun.clear();
            self.intake.fault(fault)?;
        }
        (self.end, self.is_dropping, self.place) = (ObjectEnd::default(), false, Place::default());
        self.intake.finish(sink)
    }
}

/// The values of an object, in a row that was begun; else a fault and at which byte it lies.
fn row(object: &[u8], intake: &mut Intake) -> Result<(), (usize, What)> {
    let mut fault = None;
    let object = object.trim_ascii_end();
    let mut json = serde_json::Deserializer::from_slice(object);
    let read = json.deserialize_map(Fields { object, intake, fault: &mut fault }).and_then(|()| json.end());
    match (fault, read) {
        (Some(fault), _) => Err(fault),
        (None, Ok(())) => Ok(()),
        (None, Err(error)) => {
            // Lines and columns of the object; the place in it is told by bytes.
            let lines = object.split_inclusive(|&byte| byte == b'\n').take(error.line().saturating_sub(1));
            let at = lines.map(<[u8]>::len).sum::<usize>() + error.column().saturating_sub(1);
            let text = error.to_string();
            let reason = text.split(" at line ").next().unwrap_or_default();
            Err((at, What::Parser { reason: reason.into() }))
        }
    }
}

struct Fields<'r, 'i> {
    object: &'r [u8],
    intake: &'i mut Intake,
    fault: &'i mut Option<(usize, What)>,
}

impl<'de> Visitor<'de> for Fields<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a value for each column")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut fields: M) -> Result<(), M::Error> {
        while let Some(name) = fields.next_key_seed(Name)? {
            let value: &RawValue = fields.next_value()?;
            // The text lies in the object: how far in, is where it stands.
            let at = (value.get().as_ptr() as usize).saturating_sub(self.object.as_ptr() as usize);
            if self.fault.is_none()
                && let Err(what) = put(self.intake, name.as_bytes(), value.get())
            {
                *self.fault = Some((at, what));
            }
        }
        Ok(())
    }
}

fn put(intake: &mut Intake, name: &[u8], value: &str) -> Result<(), What> {
    let Some(column) = intake.column(name)? else { return Ok(()) };
    match value.as_bytes() {
        b"null" => Ok(()),
        [b'"', text @ .., b'"'] if !text.contains(&b'\\') => intake.put(column, Form::Quoted, text),
        [b'"', ..] => {
            let text: String = serde_json::from_str(value)
                .map_err(|error| What::Parser { reason: error.to_string().into() })?;
            intake.put(column, Form::Quoted, text.as_bytes())
        }
        bare => intake.put(column, Form::Bare, bare),
    }
}

/// The name of a field, borrowed where it has no escapes.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: serde::Deserializer<'de>>(self, name: D) -> Result<Self::Value, D::Error> {
        name.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a column")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}
