//! What the screen shows and what keys make of it. Pure: it reads nothing, and is told what was read.

use planish_report::{TopReport, TopSort};
use planish_residency::top::{Sample, TopRow};
use planish_sorted::SortSmall as _;

use super::keys::Key;

/// What the loop around must do for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Show what there is.
    Show,
    /// End.
    Quit,
    /// Make the map of this process.
    Map(u32),
    /// Stand still, or go on.
    Pause,
    /// Go so many samples on.
    Step(isize),
    /// Double the speed so many times.
    Faster(i32),
    /// Take a sample at once.
    Now,
}

/// What fills the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The processes.
    Table,
    /// The same while a filter is being typed.
    Filter,
    /// One process: lines of text, and the first of them that is shown.
    One { pid: u32, lines: Vec<String>, first: usize },
    /// The keys.
    Help,
}

/// The screen as it is.
#[derive(Debug)]
pub(super) struct View {
    pub mode: Mode,
    pub sort: TopSort,
    pub reversed: bool,
    pub filter: String,
    /// The selected process: it stays selected while rows move.
    pub selected: Option<u32>,
    /// The row at the top of the table.
    pub first: usize,
    /// Rows that the table has room for.
    pub room: usize,
    pub report: TopReport,
    /// Where a replay is; empty of a live machine.
    pub place: String,
    /// Whether samples are taken.
    pub paused: bool,
    /// What was recorded so far; empty where nothing is.
    pub recorded: String,
}

impl View {
    pub fn new(sort: TopSort, filter: &str, sample: &Sample) -> Self {
        Self {
            mode: Mode::Table,
            sort,
            reversed: false,
            filter: filter.to_owned(),
            selected: None,
            first: 0,
            room: 20,
            report: TopReport::of(sample, None, sort, filter),
            place: String::new(),
            paused: false,
            recorded: String::new(),
        }
    }

    /// Takes a new sample, or the same one in another order.
    pub fn update(&mut self, sample: &Sample, before: Option<&Sample>) {
        self.report = TopReport::of(sample, before, self.sort, &self.filter);
        if self.reversed {
            self.report.rows.reverse();
        }
        self.follow();
    }

    /// Keeps the selected row on the screen. One that has ended leaves its place to the next.
    fn follow(&mut self) {
        let rows = &self.report.rows;
        let at = self.position().unwrap_or(self.first.min(rows.len().saturating_sub(1)));
        self.selected = rows.get(at).map(|row| row.pid);
        let room = self.room.max(1);
        // No room stays empty above rows that are there.
        let most = rows.len().saturating_sub(room);
        self.first = self.first.clamp((at + 1).saturating_sub(room), at).min(most);
    }

    /// Has room for another number of rows.
    pub fn resize(&mut self, room: usize) {
        self.room = room;
        self.follow();
    }

    fn position(&self) -> Option<usize> {
        let selected = self.selected?;
        self.report.rows.iter().position(|row| row.pid == selected)
    }

    /// The rows that are on the screen.
    pub fn shown(&self) -> &[TopRow] {
        let rows = &self.report.rows;
        let end = (self.first + self.room).min(rows.len());
        rows.get(self.first..end).unwrap_or_default()
    }

    /// Their processes: those whose figures are worth the most.
    pub fn shown_pids(&self) -> Vec<u32> {
        self.shown().iter().map(|row| row.pid).collect()
    }

    /// Shows one process.
    pub fn show_one(&mut self, pid: u32, lines: Vec<String>) {
        self.mode = Mode::One { pid, lines, first: 0 };
    }

    /// What becomes of a key.
    pub fn press(&mut self, key: Key) -> Wish {
        if key == Key::Interrupt {
            return Wish::Quit;
        }
        match &mut self.mode {
            Mode::Filter => self.press_filter(key),
            Mode::Table => self.press_table(key),
            Mode::Help => {
                self.mode = Mode::Table;
                Wish::Show
            }
            Mode::One { pid, lines, first } => {
                let (pid, last) = (*pid, lines.len().saturating_sub(1));
                let page = self.room.max(1);
                match key {
                    Key::Up | Key::Char('k') => *first = first.saturating_sub(1),
                    Key::Down | Key::Char('j') => *first = (*first + 1).min(last),
                    Key::PageUp => *first = first.saturating_sub(page),
                    Key::PageDown => *first = (*first + page).min(last),
                    Key::Home => *first = 0,
                    Key::End => *first = last,
                    Key::Enter => return Wish::Map(pid),
                    Key::Escape | Key::Left | Key::Backspace => self.mode = Mode::Table,
                    Key::Char('q') => return Wish::Quit,
                    _ => {}
                }
                Wish::Show
            }
        }
    }

    fn press_table(&mut self, key: Key) -> Wish {
        let page = self.room.max(1) as isize;
        match key {
            Key::Up | Key::Char('k') => self.go(-1),
            Key::Down | Key::Char('j') => self.go(1),
            Key::PageUp => self.go(-page),
            Key::PageDown => self.go(page),
            Key::Home => self.go(isize::MIN),
            Key::End => self.go(isize::MAX),
            Key::Enter => return self.selected.map_or(Wish::Show, Wish::Map),
            Key::Char('q') => return Wish::Quit,
            Key::Char('/') => self.mode = Mode::Filter,
            Key::Char('?') => self.mode = Mode::Help,
            Key::Escape => {
                self.filter.clear();
                self.sort_rows();
            }
            Key::Char(' ') => return Wish::Pause,
            Key::Char('.') | Key::Right => return Wish::Step(1),
            Key::Char(',') | Key::Left => return Wish::Step(-1),
            Key::Char('+') => return Wish::Faster(1),
            Key::Char('-') => return Wish::Faster(-1),
            Key::Char(c) => {
                if let Some(sort) = TopSort::ALL.into_iter().find(|sort| sort.key() == c) {
                    self.reversed = self.sort == sort && !self.reversed;
                    self.sort = sort;
                    self.sort_rows();
                    // What comes to the top has not been asked for what is dear.
                    return Wish::Now;
                }
            }
            Key::Backspace | Key::Interrupt => {}
        }
        Wish::Show
    }

    fn press_filter(&mut self, key: Key) -> Wish {
        match key {
            Key::Char(c) => self.filter.push(c),
            Key::Backspace => drop(self.filter.pop()),
            Key::Escape => {
                self.filter.clear();
                self.mode = Mode::Table;
            }
            Key::Enter => {
                self.mode = Mode::Table;
                return Wish::Now;
            }
            _ => {}
        }
        Wish::Show
    }

    /// Sorts what there is. The top is looked at, and nothing stays selected that was somewhere else.
    fn sort_rows(&mut self) {
        let sort = self.sort;
        self.report.sort = sort;
        self.report.rows.sort_small_by(|a, b| sort.order(a, b));
        if self.reversed {
            self.report.rows.reverse();
        }
        (self.first, self.selected) = (0, None);
        self.follow();
    }

    fn go(&mut self, by: isize) {
        let last = self.report.rows.len().saturating_sub(1);
        let at = self.position().unwrap_or(0).saturating_add_signed(by).min(last);
        self.selected = self.report.rows.get(at).map(|row| row.pid);
        self.follow();
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    fn view() -> View {
        let mut view = View::new(TopSort::Resident, "", &sample(0));
        view.room = 2;
        view.update(&sample(2000), Some(&sample(0)));
        view
    }

    fn shown(view: &View) -> Vec<u32> {
        view.shown_pids()
    }

    #[test]
    fn the_selected_process_stays_on_the_screen() {
        let mut view = view();
        assert_eq!((shown(&view), view.selected), (vec![30, 20], Some(30)));
        view.press(Key::Down);
        view.press(Key::Down);
        assert_eq!((shown(&view), view.selected), (vec![20, 10], Some(10)));
        view.press(Key::End);
        assert_eq!(view.selected, Some(10));
        // It has ended: its neighbour takes its place.
        let mut later = sample(4000);
        later.processes.retain(|process| process.pid != 10);
        view.update(&later, Some(&sample(2000)));
        assert_eq!((shown(&view), view.selected), (vec![30, 20], Some(20)));
        later.processes.clear();
        view.update(&later, None);
        assert_eq!((shown(&view), view.selected), (vec![], None));
        assert_eq!(view.press(Key::Enter), Wish::Show, "there is nobody to look at");
        view.press(Key::Down);
    }

    #[test]
    fn a_key_sorts_and_the_same_again_turns_around() {
        let mut view = view();
        assert_eq!(view.press(Key::Char('p')), Wish::Now);
        assert_eq!((shown(&view), view.sort), (vec![10, 20], TopSort::Pid));
        view.press(Key::Char('p'));
        assert_eq!((shown(&view), view.reversed), (vec![30, 20], true));
        // And so it stays with the next sample.
        view.update(&sample(4000), Some(&sample(2000)));
        assert_eq!(shown(&view), [30, 20]);
        view.press(Key::Char('t'));
        assert!(!view.reversed);
    }

    #[test]
    fn a_filter_is_typed_and_left() {
        let mut view = view();
        view.press(Key::Char('/'));
        for c in "redq".chars() {
            assert_eq!(view.press(Key::Char(c)), Wish::Show, "letters are no commands here");
        }
        view.press(Key::Backspace);
        assert_eq!(view.press(Key::Enter), Wish::Now);
        view.update(&sample(2000), None);
        assert_eq!(shown(&view), [20]);
        view.press(Key::Escape);
        view.update(&sample(2000), None);
        assert_eq!(shown(&view), [30, 20]);
    }

    #[test]
    fn one_process_is_scrolled_and_left() {
        let mut view = view();
        assert_eq!(view.press(Key::Enter), Wish::Map(30));
        view.show_one(30, (0..5).map(|line| line.to_string()).collect());
        view.press(Key::PageDown);
        view.press(Key::Down);
        assert!(matches!(view.mode, Mode::One { first: 3, .. }), "{:?}", view.mode);
        view.press(Key::End);
        view.press(Key::Down);
        assert!(matches!(view.mode, Mode::One { first: 4, .. }));
        assert_eq!(view.press(Key::Enter), Wish::Map(30), "it is made again");
        view.press(Key::Escape);
        assert_eq!(view.mode, Mode::Table);
        assert_eq!(view.press(Key::Interrupt), Wish::Quit);
    }
}
