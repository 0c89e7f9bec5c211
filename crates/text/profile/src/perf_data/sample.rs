//! One sample: the fields before the stacks, the call chain, the branches.

use super::bytes::{u32_at, u64_at};
use super::container::{Event, Record, fields};

/// Values above this mark where a chain changes its context: `PERF_CONTEXT_MAX`, -4095.
const CONTEXT_MAX: u64 = -4095_i64 as u64;
/// `PERF_CONTEXT_USER`, -512: user frames follow.
const CONTEXT_USER: u64 = -512_i64 as u64;
/// `PERF_SAMPLE_BRANCH_HW_INDEX`: one more number stands before the branches.
const BRANCH_HW_INDEX: u64 = 1 << 17;
const BRANCH_BYTES: usize = 24;
/// `mispred` of `struct perf_branch_entry`: the lowest bit of its flags.
const BRANCH_MISSED: u64 = 1;
/// The three lowest bits of a record's `misc`: where the CPU was.
const MISC_CPUMODE: u16 = 7;
const MISC_USER: u16 = 2;
/// Bits of `read_format`.
const READ_ENABLED: u64 = 1;
const READ_RUNNING: u64 = 1 << 1;
const READ_ID: u64 = 1 << 2;
const READ_GROUP: u64 = 1 << 3;
const READ_LOST: u64 = 1 << 4;

/// A sample, as far as it matters to code.
#[derive(Debug)]
pub(super) struct Sample<'a> {
    pub ip: u64,
    pub pid: u32,
    pub tid: u32,
    /// Whether the CPU ran user code.
    pub is_user: bool,
    /// The CPU that it was taken on, where the event tells it.
    pub cpu: Option<u32>,
    /// The access to memory that it is of, where the event is of such.
    pub access: Option<Access>,
    chain: &'a [u8],
    branches: &'a [u8],
}

/// A load or a store, and what answered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    /// The address in the process.
    pub address: u64,
    /// The same in memory, where the recorder was allowed to see it.
    pub physical: Option<u64>,
    /// `union perf_mem_data_src`.
    pub source: u64,
    /// How long it took, in cycles of the CPU's own counting; 0 where it does not tell.
    pub weight: u64,
}

impl<'a> Sample<'a> {
    /// `None` for a sample that is shorter than its event says.
    pub fn parse(record: &Record<'a>, event: &Event) -> Option<Self> {
        let has = |bit: u64| event.sample_type & bit != 0;
        let mut body = Cursor { bytes: record.body, at: 0 };
        body.skip(8 * usize::from(has(fields::IDENTIFIER)))?;
        let ip = if has(fields::IP) { body.u64()? } else { 0 };
        let (pid, tid) =
            if has(fields::TID) { (u32_at(body.rest(), 0)?, u32_at(body.rest(), 4)?) } else { (0, 0) };
        body.skip(8 * [fields::TID, fields::TIME].iter().filter(|bit| has(**bit)).count())?;
        let address = if has(fields::ADDR) { Some(body.u64()?) } else { None };
        body.skip(8 * [fields::ID, fields::STREAM_ID].iter().filter(|bit| has(**bit)).count())?;
        // The CPU in the lower half of a word.
        let cpu = if has(fields::CPU) { Some(body.u64()? as u32) } else { None };
        body.skip(8 * usize::from(has(fields::PERIOD)))?;
        if has(fields::READ) {
            body.skip_read(event.read_format)?;
        }
        let mut chain: &[u8] = &[];
        if has(fields::CALLCHAIN) {
            let count = body.u64()?;
            chain = body.take(count, 8)?;
        }
        if has(fields::RAW) {
            let length = u64::from(u32_at(body.rest(), 0)?);
            body.skip(4)?;
            body.take(length, 1)?;
        }
        let mut branches: &[u8] = &[];
        if has(fields::BRANCH_STACK) {
            let count = body.u64()?;
            body.skip(8 * usize::from(event.branch_type & BRANCH_HW_INDEX != 0))?;
            branches = body.take(count, BRANCH_BYTES)?;
        }
        let access = match address {
            Some(address) if has(fields::DATA_SRC) => body.access(address, event.sample_type),
            _ => None,
        };
        let is_user = record.misc & MISC_CPUMODE == MISC_USER;
        Some(Self { ip, pid, tid, is_user, cpu, access, chain, branches })
    }

    /// Places of the call chain, the innermost first; frames of the kernel and of hosts as address 0, which is
    /// outside of every program. Return addresses are moved back into the call that they follow.
    pub fn chain(&self) -> impl Iterator<Item = u64> + 'a {
        let (words, _) = self.chain.as_chunks::<8>();
        let mut in_user = self.is_user;
        let mut is_first = true;
        let mut kernel_told = false;
        words.iter().map(|word| u64::from_le_bytes(*word)).filter_map(move |ip| {
            if ip >= CONTEXT_MAX {
                in_user = ip == CONTEXT_USER;
                return None;
            }
            if !in_user {
                // One frame stands for the whole stack of the kernel.
                is_first = false;
                return (!std::mem::replace(&mut kernel_told, true)).then_some(0);
            }
            let is_leaf = std::mem::take(&mut is_first);
            Some(if is_leaf { ip } else { ip.saturating_sub(1) })
        })
    }

    /// Branches from the youngest to the oldest: source, target, and whether the CPU had foreseen another one.
    pub fn branches(&self) -> impl Iterator<Item = (u64, u64, bool)> + 'a {
        let (entries, _) = self.branches.as_chunks::<BRANCH_BYTES>();
        entries.iter().filter_map(|entry| {
            let is_missed = u64_at(entry, 16)? & BRANCH_MISSED != 0;
            Some((u64_at(entry, 0)?, u64_at(entry, 8)?, is_missed))
        })
    }
}

/// A place in a record.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    fn u64(&mut self) -> Option<u64> {
        let value = u64_at(self.rest(), 0)?;
        self.at += 8;
        Some(value)
    }

    fn skip(&mut self, length: usize) -> Option<()> {
        self.take(length as u64, 1).map(|_| ())
    }

    fn take(&mut self, count: u64, each: usize) -> Option<&'a [u8]> {
        let length = usize::try_from(count).ok()?.checked_mul(each)?;
        let taken = self.rest().get(..length)?;
        self.at += length;
        Some(taken)
    }

    /// What stands behind the branches: weight, source, and further fields of which the physical address is wanted.
    /// Registers and stacks, whose length only the attribute tells, are passed over by nobody: an event with them has
    /// no accesses here.
    fn access(&mut self, address: u64, sample_type: u64) -> Option<Access> {
        let has = |bit: u64| sample_type & bit != 0;
        if has(fields::REGS_USER | fields::STACK_USER) {
            return None;
        }
        let weight = match () {
            () if has(fields::WEIGHT) => self.u64()?,
            // Its first half is the latency, the other one what the CPU makes of it.
            () if has(fields::WEIGHT_STRUCT) => self.u64()? & u64::from(u32::MAX),
            () => 0,
        };
        let source = self.u64()?;
        self.skip(8 * usize::from(has(fields::TRANSACTION)))?;
        let has_physical = has(fields::PHYS_ADDR) && !has(fields::REGS_INTR);
        let physical = if has_physical { self.u64().filter(|at| *at != 0) } else { None };
        Some(Access { address, physical, source, weight })
    }

    /// The counter values of `PERF_SAMPLE_READ`: one, or those of a group.
    fn skip_read(&mut self, format: u64) -> Option<()> {
        let times = usize::from(format & READ_ENABLED != 0) + usize::from(format & READ_RUNNING != 0);
        let marks = usize::from(format & READ_ID != 0) + usize::from(format & READ_LOST != 0);
        if format & READ_GROUP == 0 {
            return self.skip(8 * (1 + times + marks));
        }
        let count = self.u64()?;
        self.skip(8 * times)?;
        self.take(count, 8 * (1 + marks)).map(|_| ())
    }
}
