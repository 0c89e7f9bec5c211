//! A table of fixed width: columns as wide as their widest cell, the last one wrapped into what is left.
//!
//! The width is given, never asked of the terminal here, so that the same value prints the same text everywhere.
//! Cells hold one-column characters only: ids, paths, numbers and plain sentences.

use std::fmt::Write as _;

use anstyle::Style;

/// Between two columns.
const GAP: &str = "  ";
/// The last column is not wrapped into less than this; a narrow terminal then wraps by itself.
const LAST_MIN: usize = 24;

/// A text and its style.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A cell in a style.
    pub fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(text, Style::new())
    }
}

/// Rows under titles.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<Cell>>,
    right: Vec<bool>,
}

impl Table {
    /// A table with these titles. A title that starts with `>` heads a column of numbers, set to the right.
    #[must_use]
    pub fn new(titles: &[&str]) -> Self {
        let bold = Style::new().bold();
        let head = titles.iter().map(|title| Cell::styled(title.trim_start_matches('>'), bold)).collect();
        Self { rows: vec![head], right: titles.iter().map(|title| title.starts_with('>')).collect() }
    }

    /// Adds a row; missing cells at its end stay empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let mut row: Vec<Cell> = cells.into_iter().collect();
        row.resize(self.right.len(), Cell::default());
        self.rows.push(row);
    }

    /// Whether there is no row under the titles.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// The table as text of `width` characters.
    #[must_use]
    pub fn render(&self, width: usize) -> String {
        let last = self.right.len() - 1;
        let widths: Vec<usize> = (0..=last)
            .map(|column| self.rows.iter().map(|row| row[column].width()).max().unwrap_or(0))
            .collect();
        let indent: usize = widths[..last].iter().map(|width| width + GAP.len()).sum();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row[..last].iter().enumerate() {
                push_padded(&mut line, cell, widths[column], self.right[column]);
                line.push_str(GAP);
            }
            let tail = &row[last];
            if self.right[last] {
                push_padded(&mut line, tail, widths[last], true);
            } else {
                let wrapped = wrap(&tail.text, width.saturating_sub(indent).max(LAST_MIN));
                for (number, part) in wrapped.iter().enumerate() {
                    if number > 0 {
                        let _ = write!(line, "\n{:indent$}", "");
                    }
                    push_padded(&mut line, &Cell::styled(part.as_str(), tail.style), 0, false);
                }
            }
            text.push_str(line.trim_end_matches(' '));
            text.push('\n');
        }
        text
    }
}

fn push_padded(line: &mut String, cell: &Cell, width: usize, right: bool) {
    let fill = width.saturating_sub(cell.width());
    let (before, after) = if right { (fill, 0) } else { (0, fill) };
    let style = cell.style;
    let _ = write!(line, "{:before$}{style}{}{style:#}{:after$}", "", cell.text, "");
}

/// Breaks a text at spaces. A word that is too long (a path) stays whole, so that it can be copied.
#[must_use]
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            lines.push(String::new());
            used = 0;
        }
        let line = lines.last_mut().expect("there is always a line");
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += length;
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Table, wrap};

    #[test]
    fn the_last_column_is_wrapped_under_itself() {
        let mut table = Table::new(&["knob", ">now", "why"]);
        table.row([
            "vm.swappiness".into(),
            "60 %".into(),
            "Keeps the memory of the service in memory".into(),
        ]);
        table.row(["thp".into(), "9 %".into(), "short".into()]);
        let text = table.render(50);
        let plain: String = strip(&text);
        assert_eq!(
            plain,
            "knob            now  why\n\
             vm.swappiness  60 %  Keeps the memory of the\n                     service in memory\n\
             thp             9 %  short\n"
        );
    }

    /// The text without its escape sequences.
    fn strip(text: &str) -> String {
        let mut plain = String::new();
        let mut rest = text;
        while let Some(start) = rest.find('\u{1b}') {
            plain.push_str(&rest[..start]);
            let end = rest[start..].find('m').expect("a sequence ends");
            rest = &rest[start + end + 1..];
        }
        plain + rest
    }

    proptest! {
        #[test]
        fn wrapping_loses_no_word(text in "[a-z/]{0,9}( [a-z/]{1,12}){0,20}", width in 1_usize..40) {
            let lines = wrap(&text, width);
            let words: Vec<_> = lines.iter().flat_map(|line| line.split_whitespace()).collect();
            prop_assert_eq!(words, text.split_whitespace().collect::<Vec<_>>());
            for line in &lines {
                prop_assert!(line.chars().count() <= width || !line.contains(' '));
            }
        }
    }
}
