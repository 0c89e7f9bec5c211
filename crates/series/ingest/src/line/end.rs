//! Where a line of line protocol ends: at the first line feed outside of quotes, and quotes are such only where the
//! value of a field begins.
//!
//! The parser finds the end by itself. This is for lines that it cannot read to their end: those that are cut by the
//! end of a piece, of which every byte is looked at once however many pieces there are, and those that have a fault,
//! whose end must not depend on the pieces in which they came.

/// What was seen of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum LineEnd {
    /// Blanks in front.
    #[default]
    Start,
    Comment,
    /// Measurement and tags.
    Series,
    SeriesEscape,
    /// Names of fields, and the time.
    Fields,
    FieldsEscape,
    /// Behind the `=` of a field.
    Value,
    /// In a value, or behind its quotes: all up to a comma or a blank is plain, equals signs too.
    Bare,
    Quoted,
    QuotedEscape,
}

impl LineEnd {
    /// Looks at more bytes; says where the line feed lies that ends the line.
    pub(super) fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        for (index, &byte) in bytes.iter().enumerate() {
            if byte == b'\n' && !matches!(self, Self::Quoted | Self::QuotedEscape) {
                return Some(index);
            }
            *self = self.behind(byte);
        }
        None
    }

    fn behind(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::Start, b' ' | b'\t' | b'\r') => Self::Start,
            (Self::Start, b'#') | (Self::Comment, _) => Self::Comment,
            (Self::Start | Self::Series, b'\\') => Self::SeriesEscape,
            (Self::Series, b' ') => Self::Fields,
            (Self::Start | Self::Series | Self::SeriesEscape, _) => Self::Series,
            (Self::Value, b'"') => Self::Quoted,
            (Self::Value | Self::Bare, b',' | b' ') => Self::Fields,
            (Self::Value | Self::Bare, _) => Self::Bare,
            (Self::Fields, b'\\') => Self::FieldsEscape,
            (Self::Fields, b'=') => Self::Value,
            (Self::Fields | Self::FieldsEscape, _) => Self::Fields,
            (Self::Quoted, b'\\') => Self::QuotedEscape,
            (Self::Quoted, b'"') => Self::Bare,
            (Self::Quoted | Self::QuotedEscape, _) => Self::Quoted,
        }
    }
}
