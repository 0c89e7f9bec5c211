//! Messages of an IPC stream, whole.
//!
//! ```text
//!   FF FF FF FF │ 4 length │ flatbuffer of that length, which says how long the body is │ body
//! ```
//!
//! The four bytes in front are missing in streams of before 2019. A length of zero ends the stream.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::RecordBatch;
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::{MessageHeader, root_as_message};
use arrow_schema::Schema;

/// What a message brings.
pub(super) enum Read {
    /// The columns.
    Schema(Schema),
    /// Rows of them.
    Rows(RecordBatch),
    /// Something that nothing can be read behind, in words.
    Broken(String),
}

const CONTINUATION: [u8; 4] = [0xff; 4];

/// What stands in front of the flatbuffer, and how long the message is by what is known of it.
#[derive(Debug, Clone, Copy)]
enum Known {
    /// Its first four bytes at most.
    Nothing,
    /// A continuation, and no length yet.
    Continued,
    /// Where the flatbuffer lies, and that the body is not known yet.
    Head { start: usize, end: usize },
    /// The same, and where the body ends.
    Whole { start: usize, head_end: usize, end: usize },
}

/// Refuses rows that the reader should not even try: it reckons with their number, and unpacks what it is told to.
fn sound(batch: &arrow_ipc::RecordBatch<'_>, body_bytes: usize) -> Result<(), String> {
    if batch.compression().is_some() {
        return Err("the stream is compressed: send it without compression".to_owned());
    }
    // A truth value is the shortest cell, and takes a bit.
    let rows = 0..=8 * body_bytes as i64;
    let nodes = batch.nodes().into_iter().flatten();
    let mut lengths = nodes.flat_map(|node| [node.length(), node.null_count()]).chain([batch.length()]);
    if lengths.all(|length| rows.contains(&length)) {
        return Ok(());
    }
    Err("a message tells of more rows than it has bytes for".to_owned())
}

/// Gathers messages and reads them.
#[derive(Debug)]
pub(super) struct Messages {
    bytes_max: usize,
    bytes: MutableBuffer,
    known: Known,
    decoder: StreamDecoder,
    has_schema: bool,
    is_ended: bool,
    /// Bytes that dictionaries grew by: nothing else outlives its message.
    grown: usize,
}

impl Messages {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            bytes: MutableBuffer::new(0),
            known: Known::Nothing,
            decoder: StreamDecoder::new(),
            has_schema: false,
            is_ended: false,
            grown: 0,
        }
    }

    /// Whether no message is begun.
    pub(super) fn is_between(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Takes bytes up to the end of a message that says something; none when they are used up.
    pub(super) fn read(&mut self, rest: &mut &[u8]) -> Option<Read> {
        loop {
            let want = match self.known {
                Known::Nothing => 4,
                Known::Continued => 8,
                Known::Head { end, .. } | Known::Whole { end, .. } => end,
            };
            let (taken, behind) = rest.split_at(rest.len().min(want - self.bytes.len()));
            if self.is_ended && !taken.is_empty() {
                return Some(Read::Broken("bytes behind the end of the stream".to_owned()));
            }
            self.bytes.extend_from_slice(taken);
            *rest = behind;
            if self.bytes.len() < want {
                return None;
            }
            match self.known_next() {
                Ok(None) => {}
                Ok(Some(read)) => return Some(read),
                Err(reason) => return Some(Read::Broken(reason)),
            }
        }
    }

    /// Looks at what is there now.
    fn known_next(&mut self) -> Result<Option<Read>, String> {
        self.known = match self.known {
            Known::Nothing if self.bytes[..4] == CONTINUATION => Known::Continued,
            Known::Nothing => self.head(0)?,
            Known::Continued => self.head(4)?,
            Known::Head { start, end } => self.body(start, end)?,
            Known::Whole { start, head_end, .. } => {
                self.known = Known::Nothing;
                return self.message(start, head_end);
            }
        };
        Ok(None)
    }

    fn head(&mut self, at: usize) -> Result<Known, String> {
        let length = [0, 1, 2, 3].map(|index| self.bytes[at + index]);
        let length = u32::from_le_bytes(length) as usize;
        if length == 0 {
            self.is_ended = true;
            self.bytes.clear();
            return Ok(Known::Nothing);
        }
        self.within(length)?;
        Ok(Known::Head { start: at + 4, end: at + 4 + length })
    }

    fn within(&self, length: usize) -> Result<(), String> {
        if length <= self.bytes_max {
            return Ok(());
        }
        let limit = self.bytes_max;
        Err(format!("a message of {length} bytes, more than {limit}: send fewer rows in each"))
    }

    fn body(&self, start: usize, end: usize) -> Result<Known, String> {
        let head = &self.bytes[start..end];
        let message = root_as_message(head).map_err(|error| format!("a message is broken: {error}"))?;
        let length = usize::try_from(message.bodyLength()).map_err(|_| "a body of negative length")?;
        self.within(length)?;
        let batch = match message.header_type() {
            MessageHeader::RecordBatch => message.header_as_record_batch(),
            MessageHeader::DictionaryBatch => message.header_as_dictionary_batch().and_then(|it| it.data()),
            _ => None,
        };
        batch.map_or(Ok(()), |batch| sound(&batch, length))?;
        Ok(Known::Whole { start, head_end: end, end: end + length })
    }

    /// Reads the message that is whole.
    fn message(&mut self, start: usize, head_end: usize) -> Result<Option<Read>, String> {
        let bytes = Buffer::from(std::mem::replace(&mut self.bytes, MutableBuffer::new(0)));
        let message = root_as_message(&bytes[start..head_end]).map_err(|error| error.to_string())?;
        let is_delta = message.header_as_dictionary_batch().is_some_and(|batch| batch.isDelta());
        if is_delta {
            self.grown += bytes.len() - head_end;
            self.within(self.grown)?;
        }
        let is_schema = message.header_type() == MessageHeader::Schema;
        if is_schema {
            let schema = message.header_as_schema().ok_or("a schema without columns")?;
            if std::mem::replace(&mut self.has_schema, true) {
                return Err("a second schema".to_owned());
            }
            let read = catch_unwind(AssertUnwindSafe(|| arrow_ipc::convert::fb_to_schema(schema)));
            let schema = read.map_err(|_| "the schema has a type that is not known")?;
            self.rows(bytes)?;
            return Ok(Some(Read::Schema(schema)));
        }
        Ok(self.rows(bytes)?.map(Read::Rows))
    }

    /// Has the reader read a message.
    fn rows(&mut self, bytes: Buffer) -> Result<Option<RecordBatch>, String> {
        let decoder = &mut self.decoder;
        let read = catch_unwind(AssertUnwindSafe(|| {
            let (mut bytes, mut rows) = (bytes, None);
            while !bytes.is_empty() {
                if let Some(batch) = decoder.decode(&mut bytes)? {
                    rows = Some(batch);
                }
            }
            Ok::<_, arrow_schema::ArrowError>(rows)
        }));
        // What a panic left in the reader is not read again: the input ends here.
        read.map_err(|_| "a message contradicts itself")?.map_err(|error| error.to_string())
    }
}
