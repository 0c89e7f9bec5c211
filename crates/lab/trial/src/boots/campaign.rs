//! The boots of a trial as they lie on the disk between them, and what comes after each: a machine of states, which
//! does nothing to the host but through [`Machine`].
//!
//! ```text
//! ┌> next arm ─> state kept ─> unit there ─> entry for once ─> reboot ─┐
//! │     │                                                              │ (another boot)
//! │     │ no more, in a boot on trial        lost <── not its boot <───┤
//! │     v                                      │                       v
//! │   reboot, by the default entry             │          state kept: begun ─> measure ─> state kept
//! │     │                                      v                                           │
//! │     v                                      └───────────> entry for once is gone <──────┘
//! │  concluded ─> unit gone ─> state gone                               │
//! └────────────────────────────────────────────────────────────────────-┘
//! ```
//!
//! Invariants, each held by a test that cuts the power at every call: the state is on the disk before the machine is
//! told anything, and the last thing that goes; a block is every arm once, in an order drawn from the seed and its own
//! number, so that a resumed one draws the same; nothing is measured in a boot that is not the arm's; a boot is
//! measured once or not at all; no more boots are asked for than were told, and none once the default entry is another
//! one than at the beginning.

use std::collections::BTreeMap;

use planish_stats::Rng;
use serde::{Deserialize, Serialize};

use crate::outcome::Better;

/// Boots of an arm that may be lost before it is dropped: one may be chance.
pub(crate) const LOST_MAX: usize = 2;

/// What is said of a boot that the boot loader was not asked for.
const PASSED_OVER: &str = "the machine was started anew without its boot loader (kexec?), for which the entry for once \
     still waited";

/// Draws of orders, apart from those of what is measured.
const ORDERS: u64 = 1 << 40;

/// What a campaign does to a machine. The power may go before, in, or after any of these calls, and each can be called
/// again then.
pub(crate) trait Machine {
    /// The identity of this boot.
    fn boot_id(&self) -> String;
    /// The name of the trial boot that this boot is, if it is one.
    fn marked(&self) -> Option<String>;
    /// Whether the entry for once still waits for the boot loader: the machine was started anew without it.
    fn is_passed_over(&self) -> bool;
    /// Seconds since 1970.
    fn now(&self) -> u64;
    /// Brings the state to the disk.
    fn keep(&mut self, campaign: &Campaign) -> Result<(), String>;
    /// Has this program go on after the next boot.
    fn resume_at_boot(&mut self) -> Result<(), String>;
    /// Has the loader boot an arm once, under this name.
    fn boot_once(&mut self, arm: usize, name: &str) -> Result<(), String>;
    /// Takes back whatever of boots for once is there.
    fn take_back(&mut self) -> Result<(), String>;
    /// Why this boot, which is marked with an arm, is not what was asked for; `None` where it is.
    fn shortfall(&self, arm: usize) -> Option<String>;
    /// Why no boot says any more what it was asked for: the default entry is another one than at the beginning, or
    /// somebody has copied the arguments of an arm to where later boots get them. `None` as long as nothing is so.
    fn spoilt(&self) -> Option<String>;
    /// Whether the default entry, as the loader has it now, is none on trial: whether a boot by it leads back.
    fn leads_back(&self) -> bool;
    /// Measures every inner arm in this boot.
    fn measure(&mut self, boot: usize) -> Result<Vec<Inner>, Unmeasured>;
    /// Whether every rung has a verdict by now.
    fn is_decided(&self, campaign: &Campaign) -> bool;
    /// Starts the machine anew.
    fn reboot(&mut self) -> Result<(), String>;
    /// Tells and stores what was found, and persists what is kept.
    fn conclude(&mut self, campaign: &Campaign) -> Result<(), String>;
    /// Has this program go on after a boot no longer, and then removes the state.
    fn clear(&mut self) -> Result<(), String>;
}

/// Why nothing was measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Unmeasured {
    /// What the workload, or the arm, came to.
    Lost(String),
    /// Somebody asked this program to end; the machine may be going down.
    Stopped,
    /// The host could not be set or put back: nothing that follows could be believed.
    Host(String),
}

/// One figure of a boot: the median over its units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) value: f64,
    pub(crate) unit: String,
    pub(crate) better: Better,
}

/// What an inner arm gave in one boot: its figures by metric, or why it gave none.
pub(crate) type Inner = Result<BTreeMap<String, Figure>, String>;

/// A boot that was meant to be of an arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Boot {
    /// The block, from 0.
    pub(crate) block: usize,
    /// The arm: 0 is the default entry, and so is the last one, the placebo.
    pub(crate) arm: usize,
    /// What every inner arm gave, the inner baseline first; or why the boot is lost.
    pub(crate) inner: Result<Vec<Inner>, String>,
}

/// The boot that is waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Expected {
    arm: usize,
    /// The name of its trial boot; none of the default entry's.
    name: Option<String>,
    /// The boot before it: as long as that runs, it has not come.
    after: String,
    /// Whether its measurement was begun: a boot that went down in it is lost, and not measured by the next one.
    begun: bool,
}

/// How a campaign ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum End {
    /// Every rung has a verdict, or every block has run.
    Whole,
    /// The baseline, or all other arms, were lost too often.
    NothingLeft,
    /// The time was up, or there were as many boots as it may ask for.
    Spent(String),
    /// Somebody ended it, or the machine refused.
    Stopped(String),
}

/// Where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum At {
    /// The next arm is due.
    Due,
    /// A boot is waited for.
    Expected(Expected),
    /// It has ended in a boot on trial, and waits for the one by the default entry after this boot.
    Home { after: String },
    /// It has ended, and is to be concluded here.
    Over,
}

/// What comes after a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The machine is being started anew, and will go on.
    Reboot,
    /// This program was asked to end; the state says where to go on.
    Interrupted,
    /// It has ended and been concluded, and the machine is as it was, save for what is named.
    Ended(Option<String>),
    /// It has ended, and could not be concluded: no boot is on trial, and the unit and the state are left to try again.
    Unconcluded(String),
}

/// The boots of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Campaign {
    seed: u64,
    /// Arms: the default entry, those of the file, and the placebo.
    arms: usize,
    blocks_max: usize,
    boots_max: usize,
    /// Seconds since 1970 after which no boot is asked for any more.
    deadline: Option<u64>,
    started_at: u64,
    /// Boots that were asked for so far, those that were asked for again too.
    asked: usize,
    /// The arms of the present block that are still to be booted, the next one last.
    due: Vec<usize>,
    block: usize,
    boots: Vec<Boot>,
    at: At,
    end: Option<(End, u64)>,
}

impl Campaign {
    /// One of so many blocks of the default entry, so many other boots, and the placebo.
    pub(crate) fn new(seed: u64, others: usize, blocks_max: usize, started_at: u64) -> Self {
        let arms = others + 2;
        let mut campaign = Self {
            seed,
            arms,
            blocks_max,
            boots_max: Self::most(others, blocks_max),
            deadline: None,
            started_at,
            asked: 0,
            due: Vec::new(),
            block: 0,
            boots: Vec::new(),
            at: At::Due,
            end: None,
        };
        campaign.draw();
        campaign
    }

    /// The same, with a moment after which no boot is asked for any more.
    pub(crate) fn until(self, deadline: Option<u64>) -> Self {
        Self { deadline, ..self }
    }

    /// One with these boots behind it, for tests of what is concluded.
    #[cfg(test)]
    pub(crate) fn played(others: usize, blocks_max: usize, boots: Vec<Boot>, end: Option<End>) -> Self {
        let end = end.map(|end| (end, 10));
        let block = boots.iter().map(|boot| boot.block).max().unwrap_or_default();
        Self { boots, end, block, ..Self::new(1, others, blocks_max, 0) }
    }

    /// Whether a trial of so many other boots and blocks can have come to this. Each number of a state is a size or a
    /// place in a list somewhere, and a disk may give back any.
    pub(crate) fn is_of(&self, others: usize, blocks_max: usize) -> bool {
        let is_arm = |arm: &usize| *arm < self.arms;
        let is_ours = |boot: &Boot| is_arm(&boot.arm) && boot.block <= self.block;
        (self.arms, self.blocks_max) == (others + 2, blocks_max)
            && self.boots_max == Self::most(others, blocks_max)
            && self.asked <= self.boots_max
            && self.boots.len() <= self.boots_max
            && self.block < blocks_max.max(1)
            && self.due.len() <= self.arms
            && self.due.iter().all(is_arm)
            && self.boots.iter().all(is_ours)
            && self.waits_for().is_none_or(|arm| is_arm(&arm))
    }

    /// The most boots that it may ask for: those of all blocks, and for each arm two that were asked for twice.
    pub(crate) fn most(others: usize, blocks_max: usize) -> usize {
        (blocks_max + LOST_MAX) * (others + 2)
    }

    /// The boots so far, in the order in which they ran.
    pub(crate) fn boots(&self) -> &[Boot] {
        &self.boots
    }

    /// Boots that were asked for so far.
    pub(crate) fn asked(&self) -> usize {
        self.asked
    }

    /// The most that it may ask for.
    pub(crate) fn boots_max(&self) -> usize {
        self.boots_max
    }

    /// The placebo's number among the arms.
    pub(crate) fn placebo(&self) -> usize {
        self.arms - 1
    }

    /// When it began, in seconds since 1970.
    pub(crate) fn started_at(&self) -> u64 {
        self.started_at
    }

    /// Seed of every draw.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// How it ended, and when.
    pub(crate) fn end(&self) -> Option<&(End, u64)> {
        self.end.as_ref()
    }

    /// The arm whose boot is waited for.
    pub(crate) fn waits_for(&self) -> Option<usize> {
        match &self.at {
            At::Expected(expected) => Some(expected.arm),
            _ => None,
        }
    }

    /// Whether the arm is a boot by the default entry.
    fn is_default(&self, arm: usize) -> bool {
        arm == 0 || arm == self.placebo()
    }

    /// The order of the present block, from the seed and its number alone.
    fn draw(&mut self) {
        self.due = (0..self.arms).filter(|arm| !self.is_lost(*arm)).collect();
        Rng::stream(self.seed, ORDERS + self.block as u64).shuffle(&mut self.due);
    }

    /// How many boots of an arm did not come, or came to nothing.
    pub(crate) fn lost(&self, arm: usize) -> usize {
        self.boots.iter().filter(|boot| boot.arm == arm && boot.inner.is_err()).count()
    }

    fn is_lost(&self, arm: usize) -> bool {
        self.lost(arm) >= LOST_MAX
    }

    /// Begins, or goes on: after a boot, after a kill, or because somebody typed it.
    pub(crate) fn go_on(&mut self, machine: &mut dyn Machine) -> Next {
        match self.take_in(machine) {
            Ok(None) => {}
            Ok(Some(next)) => return next,
            Err(why) => self.set_end(End::Stopped(why), machine),
        }
        loop {
            if let Some(why) = machine.spoilt() {
                self.set_end(End::Stopped(why), machine);
            }
            if let Some(end) = self.ended(machine) {
                self.set_end(end, machine);
                return self.leave(machine);
            }
            match self.send(machine) {
                Ok(true) => return Next::Reboot,
                Ok(false) => {}
                Err(why) => self.set_end(End::Stopped(why), machine),
            }
        }
    }

    /// Ends it before its time, wherever it is. The machine is not started anew: a boot on trial runs until somebody
    /// leaves it.
    pub(crate) fn stop(&mut self, machine: &mut dyn Machine, why: &str) -> Next {
        self.set_end(End::Stopped(why.to_owned()), machine);
        self.conclude(machine)
    }

    fn set_end(&mut self, end: End, machine: &dyn Machine) {
        if self.end.is_none() {
            self.end = Some((end, machine.now()));
        }
    }

    /// Takes in what this boot is; what comes next, where that follows from it alone.
    fn take_in(&mut self, machine: &mut dyn Machine) -> Result<Option<Next>, String> {
        match self.at.clone() {
            At::Due => Ok(None),
            At::Over => Ok(Some(self.conclude(machine))),
            At::Home { after } if machine.boot_id() == after => Ok(Some(self.leave(machine))),
            At::Home { .. } => Ok(Some(self.conclude(machine))),
            // A kill came between the state and the reboot: the same arm once more.
            At::Expected(expected) if machine.boot_id() == expected.after => {
                self.due.push(expected.arm);
                self.at = At::Due;
                Ok(None)
            }
            At::Expected(expected) => self.take_in_boot(&expected, machine),
        }
    }

    fn take_in_boot(
        &mut self,
        expected: &Expected,
        machine: &mut dyn Machine,
    ) -> Result<Option<Next>, String> {
        let inner = if machine.marked() != expected.name {
            Err(match expected.name {
                Some(_) if machine.is_passed_over() => PASSED_OVER.to_owned(),
                Some(_) => "it did not come up: the machine is on its old entry".to_owned(),
                None => "another entry than the default one was booted".to_owned(),
            })
        } else if expected.begun {
            Err("it went down while it was measured".to_owned())
        } else if let Some(short) = machine.shortfall(expected.arm) {
            Err(short)
        } else {
            self.at = At::Expected(Expected { begun: true, ..expected.clone() });
            machine.keep(self)?;
            match machine.measure(self.boots.len()) {
                Ok(inner) => Ok(inner),
                Err(Unmeasured::Lost(why)) => Err(why),
                Err(Unmeasured::Stopped) => return Ok(Some(Next::Interrupted)),
                Err(Unmeasured::Host(why)) => return Err(why),
            }
        };
        self.boots.push(Boot { block: self.block, arm: expected.arm, inner });
        self.at = At::Due;
        machine.keep(self)?;
        machine.take_back()?;
        Ok(None)
    }

    /// Draws the next block where this one is over; how it ends, where it does.
    fn ended(&mut self, machine: &dyn Machine) -> Option<End> {
        if let Some((end, _)) = &self.end {
            return Some(end.clone());
        }
        let others = (1..self.placebo()).filter(|arm| !self.is_lost(*arm)).count();
        if self.is_lost(0) || others == 0 {
            return Some(End::NothingLeft);
        }
        self.due.retain({
            let lost: Vec<bool> = (0..self.arms).map(|arm| self.is_lost(arm)).collect();
            move |arm| !lost[*arm]
        });
        if self.due.is_empty() {
            if self.block + 1 >= self.blocks_max || machine.is_decided(self) {
                return Some(End::Whole);
            }
            self.block += 1;
            self.draw();
        }
        if self.asked >= self.boots_max {
            return Some(End::Spent(format!("{} boots were asked for, which is the most", self.asked)));
        }
        let is_late = self.deadline.is_some_and(|deadline| machine.now() >= deadline);
        is_late.then(|| End::Spent("the time was up".to_owned()))
    }

    /// Has the next boot be of the arm that is due; false where the loader refuses that arm, whose boot is lost then.
    fn send(&mut self, machine: &mut dyn Machine) -> Result<bool, String> {
        let arm = self.due.pop().expect("a block that is over was drawn anew");
        let name = (!self.is_default(arm)).then(|| format!("{:x}-{}-{arm}", self.seed, self.asked));
        let after = machine.boot_id();
        self.asked += 1;
        self.at = At::Expected(Expected { arm, name: name.clone(), after, begun: false });
        machine.keep(self)?;
        machine.resume_at_boot()?;
        // What a cut left of an earlier try: two entries for once would be one too many.
        machine.take_back()?;
        if let Some(name) = name
            && let Err(why) = machine.boot_once(arm, &name)
        {
            machine.take_back()?;
            let inner = Err(format!("the boot loader could not be told to boot it: {why}"));
            self.boots.push(Boot { block: self.block, arm, inner });
            self.at = At::Due;
            machine.keep(self)?;
            return Ok(false);
        }
        machine.reboot()?;
        Ok(true)
    }

    /// Leaves a boot on trial for the default entry, and concludes there; at once where this is by the default entry,
    /// and where the default entry has become one on trial: another boot would change nothing.
    fn leave(&mut self, machine: &mut dyn Machine) -> Next {
        if machine.marked().is_none() || !machine.leads_back() {
            return self.conclude(machine);
        }
        self.at = At::Home { after: machine.boot_id() };
        let left = machine
            .keep(self)
            .and_then(|()| machine.take_back())
            .and_then(|()| machine.resume_at_boot())
            .and_then(|()| machine.reboot());
        match left {
            Ok(()) => Next::Reboot,
            Err(why) => {
                self.end = Some((End::Stopped(why), machine.now()));
                self.conclude(machine)
            }
        }
    }

    /// Takes everything back. The state goes last: until then all of this can be done again.
    fn conclude(&mut self, machine: &mut dyn Machine) -> Next {
        self.at = At::Over;
        let kept = machine.keep(self);
        let taken = machine.take_back();
        if let Err(why) = machine.conclude(self) {
            return Next::Unconcluded(why);
        }
        let cleared = machine.clear();
        Next::Ended(kept.err().or(taken.err()).or(cleared.err()))
    }
}

#[cfg(test)]
mod tests;
