//! The screen as lines: what a [`View`] looks like in so many columns and rows. Pure.

use anstyle::Style;
use planish_report::{
    TOP_NODE_TITLES, TOP_TITLES, TopSort, styles, top_cells, top_node_cells, top_user_cell, units,
};

use super::view::{Mode, View};

/// A line in one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub style: Style,
    pub text: String,
}

fn line(style: Style, text: impl Into<String>) -> Line {
    Line { style, text: text.into() }
}

/// Columns of the processes, each as wide as its widest usual cell; the name takes what is left.
const WIDTHS: [usize; 8] = [8, 8, 8, 7, 13, 7, 6, 10];
/// Columns of the nodes.
const NODE_WIDTHS: [usize; 9] = [4, 15, 20, 6, 11, 8, 10, 9, 22];
/// The user stands before the name where so many columns are left for both.
const USER_FROM: usize = 96;
/// Digits of most users.
const USER_WIDTH: usize = 6;
/// Nodes that the screen tells; the rest is counted.
const NODES_MAX: usize = 8;

const HELP: &str = "\
up, down, page up, page down, home, end   select a process
enter     its map: kinds, pages, nodes, threads; enter again makes it anew, esc leaves
m c r t h s f p   sort by resident memory, CPU, remote share, page tables, huge pages, swap, faults, PID;
          the same key again turns the order around
/         show only programs whose name holds what is typed; esc shows all
space     stand still, and go on
, .       in a replay: a sample back, a sample on (also left and right)
- +       in a replay: half and double the speed
q         end (also ctrl-C)

cpu       of one CPU, since the sample before        remote    share of memory remote to its threads
huge      share of memory on huge pages              faults/s  of both kinds; 5d: 5 of them waited for a disk
-         not read yet, or not seen                  n/a       this machine cannot tell
uid       who it runs as (on screens of 96 columns)";

/// The screen. It says to the view how many rows it had room for.
pub(super) fn screen(view: &mut View, width: usize, height: usize) -> Vec<Line> {
    let mut lines = Vec::with_capacity(height);
    // Never more than the window has: what is too wide would wrap, and what is too long would scroll.
    let (width, rows, height) = (width.max(1), height.max(1), height.max(4));
    lines.push(line(styles::BOLD, head(view)));
    match view.mode.clone() {
        Mode::Help => lines.extend(HELP.lines().map(|text| line(Style::new(), text))),
        Mode::One { lines: told, first, .. } => {
            view.room = height - 2;
            lines.extend(
                told.iter().skip(first).take(height - 2).map(|text| line(Style::new(), text.as_str())),
            );
        }
        Mode::Table | Mode::Filter => table(view, &mut lines, (width, height)),
    }
    lines.truncate(height - 1);
    lines.resize(height - 1, line(Style::new(), ""));
    lines.push(line(styles::DIM, foot(view)));
    lines.truncate(rows);
    for line in &mut lines {
        let text = units::harmless(&line.text).replace(['\n', '\t'], " ");
        line.text = text.chars().take(width).collect();
    }
    lines
}

/// `planish top  paused  12 samples recorded  38 processes, 120 threads of the kernel; rates over 2.0 s`: what a narrow
/// window must not cut off comes first.
fn head(view: &View) -> String {
    let paused = if view.paused && view.place.is_empty() { "paused" } else { "" };
    let moment = view.report.unix_seconds.filter(|_| !view.place.is_empty()).map(units::moment);
    let what = match view.mode {
        Mode::One { pid, .. } => format!("process {pid}"),
        _ => view.report.summary(),
    };
    let told = [&view.place, paused, &view.recorded, moment.as_deref().unwrap_or_default(), &what];
    let told = told.into_iter().filter(|told| !told.is_empty());
    told.fold("planish top".to_owned(), |text, told| text + "  " + told)
}

fn foot(view: &View) -> String {
    match view.mode {
        Mode::Filter => format!("name holds: {}_   enter keeps it, esc shows all", view.filter),
        Mode::Help => "any key goes back".to_owned(),
        Mode::One { .. } => "esc back  up/down scroll  enter make it anew  q end".to_owned(),
        Mode::Table if view.filter.is_empty() => {
            "? keys  enter map of one  / filter  m c r t h s f p sort  space pause  q end".to_owned()
        }
        Mode::Table => format!("names with `{}`  esc shows all  ? keys  q end", view.filter),
    }
}

fn table(view: &mut View, lines: &mut Vec<Line>, (width, height): (usize, usize)) {
    lines.push(line(styles::DIM, view.report.cost()));
    lines.extend(view.report.missing().into_iter().map(|text| line(styles::DIM, text)));
    for unseen in &view.report.unseen {
        lines.push(line(styles::WARNING, format!("not seen: {unseen}")));
    }
    let row = |cells: &[String], widths: &[usize]| -> String {
        let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:>width$}"));
        padded.collect::<Vec<_>>().join(" ")
    };
    if !view.report.nodes.is_empty() {
        lines.push(line(styles::BOLD, row(&TOP_NODE_TITLES.map(str::to_owned), &NODE_WIDTHS)));
        let shown = view.report.nodes.iter().take(NODES_MAX);
        lines.extend(shown.map(|node| line(Style::new(), row(&top_node_cells(node), &NODE_WIDTHS))));
        let more = view.report.nodes.len().saturating_sub(NODES_MAX);
        if more > 0 {
            lines.push(line(styles::DIM, format!("and {more} more nodes (--once tells all)")));
        }
        // Two nodes a line.
        let told = view.report.bandwidth().into_iter().take(NODES_MAX / 2);
        lines.extend(told.map(|told| line(Style::new(), format!("bandwidth of {told}"))));
    }
    let mut titles = TOP_TITLES.map(str::to_owned);
    let sorted = TopSort::ALL.iter().position(|sort| *sort == view.sort).unwrap_or(0);
    titles[sorted] = format!("{}{}", if view.reversed { '^' } else { '*' }, titles[sorted]);
    let user = |told: &str| match width {
        USER_FROM.. => format!(" {told:>USER_WIDTH$}"),
        _ => String::new(),
    };
    lines.push(line(styles::BOLD, row(&titles, &WIDTHS) + &user("uid") + " program"));
    // After this point the room is known: what the selected row may move in.
    let room = (height - 1).saturating_sub(lines.len()).max(1);
    if view.room != room {
        view.resize(room);
    }
    if view.report.rows.is_empty() {
        lines.push(line(Style::new(), "no process to show"));
    }
    for shown in view.shown() {
        let selected = view.selected == Some(shown.pid);
        let style = if selected { Style::new().invert() } else { Style::new() };
        lines.push(line(
            style,
            row(&top_cells(shown, view.report.memory_nodes), &WIDTHS)
                + &user(&top_user_cell(shown))
                + &format!(" {}", shown.name),
        ));
    }
}

/// The lines as a terminal takes them: each over the one that was there, without a flicker between.
pub(super) fn painted(lines: &[Line], colour: bool) -> String {
    let mut text = String::from("\x1b[H");
    for (number, Line { style, text: told }) in lines.iter().enumerate() {
        let end = if number + 1 == lines.len() { "" } else { "\r\n" };
        // Without colour what is selected is still seen.
        let plain =
            if style.get_effects().contains(anstyle::Effects::INVERT) { *style } else { Style::new() };
        let style = if colour { *style } else { plain };
        text += &format!("{style}{told}{style:#}\x1b[K{end}");
    }
    text + "\x1b[J"
}
