//! A table of fixed width: columns as wide as their widest cell, the last one wrapped into what is left.
//!
//! The width is given, never asked of the terminal here, so that the same value prints the same text everywhere.
//! Cells hold one-column characters only: ids, paths, numbers and plain sentences.

use std::fmt::Write as _;

use anstyle::Style;

use crate::units;

/// Between two columns.
const GAP: &str = "  ";
/// The last column is not wrapped into less than this; a narrow terminal then wraps by itself.
const LAST_MIN: usize = 24;
/// Where the last column would get less than this, those in the middle are wrapped as well.
const LAST_WANTED: usize = 40;
/// A column in the middle is not made narrower than this.
const MIDDLE_MIN: usize = 12;

/// A cell shows this many characters of its text. Nobody reads more in a table, JSON has the whole, and one file of a
/// host with a line of a million characters must not make every line of the table as long.
const CELL_MAX: usize = 2000;

/// A text and its style.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A cell in a style.
    pub fn styled(text: impl Into<String>, style: Style) -> Self {
        let mut text = units::one_line(&text.into());
        if let Some((end, _)) = text.char_indices().nth(CELL_MAX) {
            text.truncate(end);
            text.push_str("...");
        }
        Self { text, style }
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
        let mut widths = self.widths();
        let indent: usize = widths[..last].iter().map(|width| width + GAP.len()).sum();
        let wide = (indent + LAST_WANTED.min(widths[last])).saturating_sub(width);
        if wide > 0 && !self.right[last] {
            self.narrow(&mut widths, wide, 1, &LIST_BREAKS);
        }
        // Where that is not enough for a line, settings are parted from their values, and names from their places.
        let indent: usize = widths[..last].iter().map(|width| width + GAP.len()).sum();
        let wide = (indent + LAST_MIN.min(widths[last])).saturating_sub(width);
        let is_tight = wide > 0 && !self.right[last];
        if is_tight {
            self.narrow(&mut widths, wide, 0, &SETTING_BREAKS);
        }
        let indent: usize = widths[..last].iter().map(|width| width + GAP.len()).sum();
        if !self.right[last] {
            widths[last] = width.saturating_sub(indent).max(LAST_MIN);
        }
        let mut text = String::new();
        for row in &self.rows {
            self.push_row(&mut text, row, &widths, if is_tight { &SETTING_BREAKS } else { &LIST_BREAKS });
        }
        text
    }

    /// The width of the widest cell of each column.
    fn widths(&self) -> Vec<usize> {
        let widest = |column: usize| self.rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
        (0..self.right.len()).map(widest).collect()
    }

    /// Takes up to `wide` characters from the columns from `first` to the one before the last, always from the widest;
    /// none gets narrower than its longest word or [`MIDDLE_MIN`].
    fn narrow(&self, widths: &mut [usize], mut wide: usize, first: usize, breaks: &[char]) {
        let words =
            |column: usize| self.rows.iter().flat_map(move |row| row[column].text.split_inclusive(breaks));
        let least: Vec<usize> = (0..widths.len())
            .map(|column| {
                words(column).map(|word| word.trim_end().chars().count()).max().unwrap_or(0).max(MIDDLE_MIN)
            })
            .collect();
        let between = first..widths.len() - 1;
        while wide > 0 {
            let can = between.clone().filter(|&column| !self.right[column] && widths[column] > least[column]);
            let Some(widest) = can.max_by_key(|&column| widths[column]) else { return };
            widths[widest] -= 1;
            wide -= 1;
        }
    }

    fn push_row(&self, text: &mut String, row: &[Cell], widths: &[usize], breaks: &[char]) {
        let last = row.len() - 1;
        let parts: Vec<Vec<String>> = row
            .iter()
            .zip(widths)
            .enumerate()
            .map(|(column, (cell, &width))| match column {
                // A cell that fits keeps its spaces as they are.
                _ if cell.width() <= width || self.right[column] => vec![cell.text.clone()],
                _ if column == last => wrap(&cell.text, width),
                _ => wrap_at(&cell.text, breaks, width),
            })
            .collect();
        for number in 0..parts.iter().map(Vec::len).max().unwrap_or(0) {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let part = parts[column].get(number).map_or("", String::as_str);
                let width = if column == last && !self.right[last] { 0 } else { widths[column] };
                push_padded(&mut line, &Cell::styled(part, cell.style), width, self.right[column]);
                if column < last {
                    line.push_str(GAP);
                }
            }
            text.push_str(line.trim_end_matches(' '));
            text.push('\n');
        }
    }
}

fn push_padded(line: &mut String, cell: &Cell, width: usize, right: bool) {
    let fill = width.saturating_sub(cell.width());
    let (before, after) = if right { (fill, 0) } else { (0, fill) };
    let style = if cell.text.is_empty() { Style::new() } else { cell.style };
    // Not by a width of the format, which is a 16-bit number and panics beyond.
    let (before, after) = (" ".repeat(before), " ".repeat(after));
    let _ = write!(line, "{before}{style}{}{style:#}{after}", cell.text);
}

/// Breaks a text at spaces. A word that is too long (a path) stays whole, so that it can be copied.
#[must_use]
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    wrap_at(text, &[' '], width)
}

/// Where a cell in the middle may be broken: lists of values have no spaces.
const LIST_BREAKS: [char; 3] = [' ', ',', '|'];
/// The same where a line is too long all the same: `CPUSetPartition=isolated` is a name and a value.
const SETTING_BREAKS: [char; 4] = [' ', ',', '|', '='];

/// Breaks a text behind the characters of `breaks`; white space counts as one space, and none ends a line.
fn wrap_at(text: &str, breaks: &[char], width: usize) -> Vec<String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_inclusive(breaks) {
        let length = word.chars().count();
        if used > 0 && used + word.trim_end().chars().count() > width {
            lines.push(String::new());
            used = 0;
        }
        lines.last_mut().expect("there is always a line").push_str(word);
        used += length;
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
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

    #[test]
    fn a_wide_column_in_the_middle_leaves_room_for_the_last_one() {
        let mut table = Table::new(&["knob", "wanted", "why"]);
        let legal = "always|defer|defer+madvise|madvise|never and some words more";
        table.row(["thp.defrag".into(), legal.into(), "Who waits for a huge page to be made".into()]);
        let text = strip(&table.render(72));
        assert_eq!(
            text,
            "knob        wanted                  why\n\
             thp.defrag  always|defer|           Who waits for a huge page to be made\n\
             \x20           defer+madvise|madvise|\n\
             \x20           never and some words\n\
             \x20           more\n"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 72));
        assert!(table.render(200).contains(legal), "where there is room nothing is broken");
    }

    /// Six columns of settings, as of `check`, were 193 characters wide.
    #[test]
    fn settings_of_many_columns_fit_into_the_width() {
        let mut table = Table::new(&["knob", "now", "wanted", "persisted", "next boot", "why"]);
        let value = "CPUSetPartition=isolated CPUAffinity=1,5";
        let cells =
            ["unit.placement realtime.service.d", value, value, value, value, "ok; as it was asked for"];
        table.row(cells.map(Into::into));
        let text = strip(&table.render(120));
        assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
        let column: Vec<&str> = text.lines().map(|line| line.get(20..37).unwrap_or("").trim()).collect();
        assert_eq!(column[1..], ["CPUSetPartition=", "isolated", "CPUAffinity=1,5"], "{text}");
        // Where there is room nothing is parted.
        assert!(table.render(250).contains(value));
    }

    #[test]
    fn a_cell_longer_than_any_format_is_cut_and_said_to_be() {
        for long in ["9".repeat(70_000), "word ".repeat(20_000), "\u{e9}".repeat(70_000)] {
            let mut table = Table::new(&["knob", ">now", "wanted", "why"]);
            table.row([long.clone().into(), long.clone().into(), long.clone().into(), long.clone().into()]);
            table.row(["a".into(), "1".into(), "2".into(), "b".into()]);
            let text = strip(&table.render(100));
            assert!(text.contains("...") && text.len() < 1_000_000, "{}", text.len());
        }
        let whole = "9".repeat(super::CELL_MAX);
        assert_eq!(super::Cell::from(whole.clone()).text, whole);
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
