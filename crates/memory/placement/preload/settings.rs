//! The settings of the launcher, read once from the environment.
//!
//! What cannot be understood is left at its default, under which nothing is done: a preload must never end the
//! program that it was put into.

use super::wire::VARIABLE;

/// Nodes that a mask holds: as many as Linux can be built for (CONFIG_NODES_SHIFT is at most 10).
pub const NODES_MAX: usize = 1024;

/// Bits of a word of a mask.
const WORD: usize = u64::BITS as usize;

/// Weights of so many nodes can be told; the kernel's own go from 1 to 255.
const WEIGHTS_MAX: usize = 64;

/// Longest name of the socket that results go to: what a path of one may have, without the zero byte behind it.
const NAME_MAX: usize = 107;

/// Longest path of a file of a control group, with the zero byte behind it.
const PATH_MAX: usize = 256;

/// What is to be done with shared memory.
pub struct Settings {
    /// Shorter mappings are left alone; 0 leaves all alone.
    pub bytes_min: usize,
    /// The mode of mbind(2); none with `has_policy` false.
    pub mode: usize,
    pub has_policy: bool,
    pub mask: [u64; NODES_MAX / WORD],
    /// Nodes with their weights, in order, to spread chunks over; empty where the policy does not spread.
    pub weights: [(u16, u8); WEIGHTS_MAX],
    pub weights_count: usize,
    /// Ask for transparent huge pages of this size; 0 does not.
    pub thp_bytes: usize,
    /// log2 of the size of the huge pages to map from a pool; 0 maps none.
    pub pool_shift: usize,
    /// Threads that prefault; 0 does not prefault.
    pub threads: usize,
    /// Most bytes to prefault, by the limit of a control group.
    pub bytes_max: usize,
    /// How much that group may use until nothing is filled any more.
    pub group_bytes: usize,
    /// The file that tells how much it uses, ended by a zero byte; empty without one.
    pub group: [u8; PATH_MAX],
    /// Bytes of memory that stay available beside a prefault.
    pub spare_bytes: usize,
    /// Where to tell results to.
    pub answer: Address,
    pub name_bytes: usize,
}

/// An abstract socket, as the kernel has it on machines that are little-endian: the family is not told here. From its
/// second byte on it is the one whose path is this name, when the family stands in `skip`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Address {
    /// The first byte of the family.
    pub family: u8,
    /// The second one, and the zero that makes it abstract.
    pub skip: [u8; 2],
    pub name: [u8; NAME_MAX],
}

impl Settings {
    /// All zeroes: what is no byte of the file of the preload costs none of what it may have.
    pub const NONE: Self = Self {
        bytes_min: 0,
        mode: 0,
        has_policy: false,
        mask: [0; NODES_MAX / WORD],
        weights: [(0, 0); WEIGHTS_MAX],
        weights_count: 0,
        thp_bytes: 0,
        pool_shift: 0,
        threads: 0,
        bytes_max: 0,
        group_bytes: 0,
        group: [0; PATH_MAX],
        spare_bytes: 0,
        answer: Address { family: 0, skip: [0; 2], name: [0; NAME_MAX] },
        name_bytes: 0,
    };

    /// Whether a mapping of this length is ours.
    pub fn takes(&self, bytes: usize) -> bool {
        bytes > self.bytes_min.wrapping_sub(1)
    }

    /// Takes one setting after the other.
    pub fn read(&mut self, mut text: Text) {
        (self.bytes_max, self.spare_bytes) = (usize::MAX, usize::MAX);
        loop {
            let (key, value) = (text.until(b'='), text.until(b':'));
            match key.first() {
                Some(b'b') => self.bytes_min = value.number(),
                Some(b'm') => (self.mode, self.has_policy) = (value.number(), true),
                Some(b'n') => self.take_nodes(value),
                Some(b'w') => self.take_weights(value),
                Some(b'h') => self.thp_bytes = value.number(),
                Some(b'p') => self.pool_shift = value.number() & 63,
                Some(b't') => self.threads = value.number(),
                Some(b'l') => self.bytes_max = value.number(),
                Some(b'g') => self.take_group(value),
                Some(b's') => self.spare_bytes = value.number(),
                Some(b'a') => self.take_name(value),
                Some(_) => {}
                None => return,
            }
        }
    }

    /// `0+1+3`
    fn take_nodes(&mut self, mut list: Text) {
        while list.first().is_some() {
            let node = list.until(b'+').number();
            if let Some(word) = self.mask.get_mut(node / WORD) {
                *word |= 1 << (node % WORD);
            }
        }
    }

    /// `0x3+1x1`: node, weight.
    fn take_weights(&mut self, mut list: Text) {
        while list.first().is_some() {
            let mut item = list.until(b'+');
            let (node, weight) = (item.until(b'x').number(), item.number());
            if let Some(place) = self.weights.get_mut(self.weights_count) {
                *place = (node as u16, weight as u8);
                self.weights_count += 1;
            }
        }
    }

    fn take_name(&mut self, name: Text) {
        // Of several the last counts: all of them together may be longer than there is room for.
        self.name_bytes = name.copy(&mut self.answer.name);
    }

    /// `12345+/sys/fs/cgroup/db/memory.current`
    fn take_group(&mut self, mut group: Text) {
        self.group_bytes = group.until(b'+').number();
        // The last byte stays the zero that ends it: a path that is too long is that of no file.
        if let Some((_, path)) = self.group.split_last_mut() {
            group.copy(path);
        }
    }

    /// The node of a chunk, by weights, round and round.
    pub fn node_of(&self, chunk: usize) -> usize {
        let known = || self.weights.iter().take(self.weights_count);
        let total: usize = known().map(|(_, weight)| usize::from(*weight)).sum();
        let mut left = chunk.checked_rem(total).unwrap_or(0);
        for (node, weight) in known() {
            if left < usize::from(*weight) {
                return usize::from(*node);
            }
            left -= usize::from(*weight);
        }
        0
    }
}

/// Bytes up to a zero byte or a separator.
#[derive(Clone, Copy)]
pub struct Text {
    at: *const u8,
    end: *const u8,
}

impl Text {
    /// # Safety
    /// `at` begins a text that ends with a zero byte and is not changed while it is read.
    pub unsafe fn new(at: *const u8) -> Self {
        let mut end = at;
        // SAFETY: up to the zero byte.
        while unsafe { *end } != 0 {
            // SAFETY: the byte before was not the last.
            end = unsafe { end.add(1) };
        }
        Self { at, end }
    }

    pub fn first(&self) -> Option<u8> {
        // SAFETY: between `at` and `end` all bytes are of the text.
        (self.at < self.end).then(|| unsafe { *self.at })
    }

    /// Takes the part before the next `separator`, and the separator.
    #[inline(always)]
    pub fn until(&mut self, separator: u8) -> Self {
        let (at, mut end) = (self.at, self.at);
        while let Some(byte) = self.next() {
            if byte == separator {
                break;
            }
            end = self.at;
        }
        Self { at, end }
    }

    /// The decimal number of its digits; what does not fit is the largest.
    pub fn number(self) -> usize {
        let mut number = 0usize;
        for digit in self.map(|byte| byte.wrapping_sub(b'0')) {
            if digit < 10 {
                number = number.saturating_mul(10).saturating_add(digit.into());
            }
        }
        number
    }

    /// Copies as much of it as there is room for; gives how much that is.
    #[inline(never)]
    fn copy(self, to: &mut [u8]) -> usize {
        let mut count = 0;
        for (place, byte) in to.iter_mut().zip(self) {
            *place = byte;
            count += 1;
        }
        count
    }

    /// Whether it is `name` and nothing else.
    pub fn is(mut self, name: &[u8]) -> bool {
        name.iter().all(|byte| self.next() == Some(*byte)) && self.next().is_none()
    }
}

impl Iterator for Text {
    type Item = u8;

    #[inline(always)]
    fn next(&mut self) -> Option<u8> {
        let byte = self.first()?;
        // SAFETY: there is a byte, so one further is in the text or its end.
        self.at = unsafe { self.at.add(1) };
        Some(byte)
    }
}

/// Finds our variable among those of the environment.
///
/// # Safety
/// `variables` is null, or a list of texts as execve(2) lays them, ended by a null pointer.
pub unsafe fn find(variables: *const *const u8) -> Option<Text> {
    let mut next = variables;
    if next.is_null() {
        return None;
    }
    loop {
        // SAFETY: the list goes on to its null pointer.
        let variable = unsafe { *next };
        if variable.is_null() {
            return None;
        }
        // SAFETY: each is a text that ends with a zero byte.
        let mut variable = unsafe { Text::new(variable) };
        if variable.until(b'=').is(VARIABLE) {
            return Some(variable);
        }
        // SAFETY: not the last one.
        next = unsafe { next.add(1) };
    }
}
