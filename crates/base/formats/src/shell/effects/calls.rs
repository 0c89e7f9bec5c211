//! Functions of a text, each of which does what it says wherever it is called.
//!
//! A library of a distribution has its few functions called over and over. What one does is settled by the variables
//! and functions that there are and by where the shell stands, and by none of its words (`$1` is not followed): a
//! call that is made in the same state as one before does nothing that is new, and is passed by. Not where the order
//! counts, which it does for what is written to the kernel, nor where the call before changed anything, or was not
//! followed to its end.

use std::rc::Rc;

use super::branches::Stand;
use super::{BYTES_OF_A_WORD, CALL_BYTES, CALLS_MAX, DEPTH_MAX, Finder, documents_of};
use crate::shell::tree::parse;

/// What settles what a call does.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct State {
    /// The function, by its place among all that were made.
    body: usize,
    stand: Stand,
    root: String,
    is_conditional: bool,
    is_doubtful: bool,
    has_other_network: bool,
    changes: usize,
}

impl Finder<'_> {
    /// Does what a function does, unless it is not known yet, or is in the middle of it.
    pub(super) fn call(&mut self, name: &str) {
        self.called.insert(name.to_owned());
        let Some(index) = self.bodies.iter().rposition(|body| body.name == name) else { return };
        if self.running.iter().any(|other| other == name) {
            return self.unsettles();
        }
        let state = self.state(index);
        if let Some(is_open) = self.done.get(&state) {
            return self.opens(*is_open, index);
        }
        let body = Rc::clone(&self.bodies[index]);
        if self.running.len() >= DEPTH_MAX || self.calls >= CALLS_MAX {
            return self.left_out();
        }
        if !self.spend(1 + body.text.len() / BYTES_OF_A_WORD) {
            return;
        }
        self.calls += 1 + body.text.len() / CALL_BYTES;
        let (unsettled, at_exit) = (self.unsettled.get(), self.at_exit.clone());
        self.running.push(name.to_owned());
        let at = std::mem::replace(&mut self.at, body.at.clone());
        let was_open = std::mem::take(&mut self.is_open);
        let script = parse(&body.text);
        let documents = std::mem::replace(&mut self.documents, documents_of(&script));
        self.list(&script.list);
        self.documents = documents;
        self.at = at;
        self.running.pop();
        self.over = self.over.filter(|word| *word != "return");
        let is_open = std::mem::replace(&mut self.is_open, was_open);
        self.opens(is_open, index);
        let is_settled = self.over.is_none() && self.unsettled.get() == unsettled && self.at_exit == at_exit;
        if is_settled && self.state(index) == state {
            self.done.insert(state, is_open);
        }
    }

    fn state(&self, body: usize) -> State {
        State {
            body,
            stand: self.stand(),
            root: self.root.clone(),
            is_conditional: self.is_conditional,
            is_doubtful: self.is_doubtful,
            has_other_network: self.has_other_network,
            changes: self.changes,
        }
    }

    /// Of a library that writes where it is told, what it is told is named by its caller.
    fn opens(&mut self, is_open: bool, body: usize) {
        self.is_open |= is_open && self.bodies[body].at.file == self.at.file;
    }

    /// Takes note of what no later call can be spared for.
    pub(super) fn unsettles(&self) {
        self.unsettled.set(self.unsettled.get() + 1);
    }
}
