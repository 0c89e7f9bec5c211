//! Queues, rings, coalescing, offloads and flow control of a network card, over generic netlink
//! (`Documentation/networking/ethtool-netlink.rst`; Linux 5.6 and later).
//!
//! Each setting is one number with a name of its own: `rings_rx`, `coalesce_adaptive_rx`, `feature_gro`. A card that
//! does not have one leaves it out of its answer. Reading needs no right; setting needs `CAP_NET_ADMIN`, and one
//! request sets one number, so that the kernel keeps all others as they are.
//!
//! Own code and no crate, since the crates for it bring an asynchronous run-time with them, for one request and one
//! answer.

mod wire;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

use wire::{Attributes, Message, Request};

/// What one request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Offloads.
    Features,
    /// Sizes of the rings of receive and transmit descriptors.
    Rings,
    /// Numbers of queues.
    Channels,
    /// How long interrupts are put off.
    Coalesce,
    /// Flow control of the link.
    Pause,
}

impl Group {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Features, Self::Rings, Self::Channels, Self::Coalesce, Self::Pause];

    /// `ETHTOOL_MSG_*_GET`; the command that sets is the next one.
    fn get(self) -> u8 {
        match self {
            Self::Features => 11,
            Self::Rings => 15,
            Self::Channels => 17,
            Self::Coalesce => 19,
            Self::Pause => 21,
        }
    }
}

/// How a setting stands in a message: the numbers of `ETHTOOL_A_*` in `include/uapi/linux/ethtool_netlink.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Four bytes, and the attribute with the largest number that the device takes.
    Number { attribute: u16, max: Option<u16> },
    /// One byte, 0 or 1.
    Switch { attribute: u16 },
    /// A bit of a set, by its name.
    Feature { name: &'static str },
}

/// One setting of a card.
#[derive(Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name here.
    pub name: &'static str,
    /// The request that has it.
    pub group: Group,
    form: Form,
}

impl Setting {
    const fn number(name: &'static str, group: Group, attribute: u16, max: Option<u16>) -> Self {
        Self { name, group, form: Form::Number { attribute, max } }
    }

    const fn switch(name: &'static str, group: Group, attribute: u16) -> Self {
        Self { name, group, form: Form::Switch { attribute } }
    }

    const fn feature(name: &'static str, feature: &'static str) -> Self {
        Self { name, group: Group::Features, form: Form::Feature { name: feature } }
    }

    /// The setting of a name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.name == name)
    }

    /// Whether a device says how large it may be.
    #[must_use]
    pub fn has_max(&self) -> bool {
        matches!(self.form, Form::Number { max: Some(_), .. })
    }

    /// Whether it is on or off.
    #[must_use]
    pub fn is_switch(&self) -> bool {
        !matches!(self.form, Form::Number { .. })
    }
}

/// Every setting that is known.
pub static SETTINGS: &[Setting] = &[
    Setting::number("channels_rx", Group::Channels, 6, Some(2)),
    Setting::number("channels_tx", Group::Channels, 7, Some(3)),
    Setting::number("channels_combined", Group::Channels, 9, Some(5)),
    Setting::number("rings_rx", Group::Rings, 6, Some(2)),
    Setting::number("rings_tx", Group::Rings, 9, Some(5)),
    Setting::number("coalesce_rx_usecs", Group::Coalesce, 2, None),
    Setting::number("coalesce_rx_frames", Group::Coalesce, 3, None),
    Setting::number("coalesce_tx_usecs", Group::Coalesce, 6, None),
    Setting::number("coalesce_tx_frames", Group::Coalesce, 7, None),
    Setting::switch("coalesce_adaptive_rx", Group::Coalesce, 11),
    Setting::switch("coalesce_adaptive_tx", Group::Coalesce, 12),
    Setting::feature("feature_gro", "rx-gro"),
    Setting::feature("feature_gso", "tx-generic-segmentation"),
    Setting::feature("feature_lro", "rx-lro"),
    Setting::feature("feature_ntuple", "rx-ntuple-filter"),
    Setting::feature("feature_tso", "tx-tcp-segmentation"),
    Setting::feature("feature_tso6", "tx-tcp6-segmentation"),
    Setting::switch("pause_autoneg", Group::Pause, 2),
    Setting::switch("pause_rx", Group::Pause, 3),
    Setting::switch("pause_tx", Group::Pause, 4),
];

/// What a device says of one setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// The number in force; of a switch 0 or 1.
    pub value: u32,
    /// The largest one that it takes, where it says so.
    pub max: Option<u32>,
    /// Whether nobody can change it on this device.
    pub fixed: bool,
}

/// What a device says of the settings of a group, by their names here.
pub type Values = BTreeMap<&'static str, Value>;

/// `ETHTOOL_A_*_HEADER` and what stands in it: the device by its name.
const HEADER: u16 = 1;
const HEADER_DEVICE: u16 = 2;
/// `ETHTOOL_A_FEATURES_HW`, `_WANTED`, `_ACTIVE` and `_NOCHANGE`.
const FEATURES_HARDWARE: u16 = 2;
const FEATURES_WANTED: u16 = 3;
const FEATURES_ACTIVE: u16 = 4;
const FEATURES_NEVER: u16 = 5;
/// `ETHTOOL_A_BITSET_NOMASK`, `_BITS`, a bit in it, and what stands in that.
const BITSET_NO_MASK: u16 = 1;
const BITSET_BITS: u16 = 3;
const BITS_BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;

/// `GENL_ID_CTRL`, its command that names a family, and the attributes of that.
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// Reads the attributes of an answer of a group. Whatever they are, this neither panics nor reads beyond them.
#[must_use]
pub fn decode(group: Group, content: &[u8]) -> Values {
    let all = Attributes(content);
    let bits = |kind: u16| all.find(kind).map(named_bits).unwrap_or_default();
    let [hardware, active, never] = match group {
        Group::Features => [FEATURES_HARDWARE, FEATURES_ACTIVE, FEATURES_NEVER].map(bits),
        _ => [const { Vec::new() }; 3],
    };
    let value = |setting: &Setting| match setting.form {
        Form::Number { attribute, max } => {
            let max = max.and_then(|max| all.number(max));
            Some(Value { value: all.number(attribute)?, max, fixed: false })
        }
        Form::Switch { attribute } => {
            Some(Value { value: u32::from(all.number(attribute)? != 0), max: None, fixed: false })
        }
        Form::Feature { name } => {
            let (is_active, changes) = (active.contains(&name), hardware.contains(&name));
            let fixed = !changes || never.contains(&name);
            // One that is off and stays off is none that this device has.
            (is_active || !fixed).then_some(Value { value: u32::from(is_active), max: None, fixed })
        }
    };
    let own = SETTINGS.iter().filter(|setting| setting.group == group);
    own.filter_map(|setting| Some((setting.name, value(setting)?))).collect()
}

/// The names of the bits that are on in a set. One without a mask lists those alone, another lists all it knows.
fn named_bits(bitset: &[u8]) -> Vec<&str> {
    let is_list = Attributes(bitset).find(BITSET_NO_MASK).is_some();
    let bits = Attributes(bitset).find(BITSET_BITS).unwrap_or_default();
    let bits = Attributes(bits).filter(|(kind, _)| *kind == BITS_BIT).map(|(_, bit)| Attributes(bit));
    let on = bits.filter(|bit| is_list || bit.find(BIT_VALUE).is_some());
    on.filter_map(|bit| bit.text(BIT_NAME)).collect()
}

/// The request that sets a setting of a device.
fn request_to_set(family: u16, sequence: u32, device: &str, setting: &Setting, value: u32) -> Vec<u8> {
    let mut request = Request::new(family, sequence, setting.group.get() + 1);
    request.nest(HEADER, |header| header.put_text(HEADER_DEVICE, device));
    match setting.form {
        Form::Number { attribute, .. } => request.put(attribute, &value.to_le_bytes()),
        Form::Switch { attribute } => request.put(attribute, &[u8::from(value != 0)]),
        // A set without the flag that it has no mask: only the bits that are listed are changed.
        Form::Feature { name } => request.nest(FEATURES_WANTED, |bitset| {
            bitset.nest(BITSET_BITS, |bits| {
                bits.nest(BITS_BIT, |bit| {
                    bit.put_text(BIT_NAME, name);
                    if value != 0 {
                        bit.put(BIT_VALUE, &[]);
                    }
                });
            });
        }),
    }
    request.finish()
}

/// A connection to the kernel's ethtool.
#[derive(Debug)]
pub struct Ethtool {
    socket: Mutex<OwnedFd>,
    family: u16,
    sequence: AtomicU32,
}

/// Bytes that one answer has at most. That of the features, the longest, has three thousand.
const ANSWER_BYTES_MAX: usize = 64 << 10;

impl Ethtool {
    /// Opens one, in the network namespace of this process.
    ///
    /// # Errors
    /// What the kernel says; `ENOENT` from one without ethtool over netlink (before Linux 5.6).
    pub fn open() -> io::Result<Self> {
        let socket =
            socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(GENERIC))?;
        let sequence = AtomicU32::new(1);
        let mut ethtool = Self { socket: Mutex::new(socket), family: CONTROL, sequence };
        let content = ethtool.ask(|sequence| {
            let mut request = Request::new(CONTROL, sequence, GET_FAMILY);
            request.put_text(FAMILY_NAME, "ethtool");
            request.finish()
        })?;
        let family = content.and_then(|content| Attributes(&content).number(FAMILY_ID));
        ethtool.family = family.and_then(|id| u16::try_from(id).ok()).ok_or(Errno::NOENT)?;
        Ok(ethtool)
    }

    /// What a device says of the settings of a group. One that has none of them says so by `EOPNOTSUPP`: then nothing.
    ///
    /// # Errors
    /// What the kernel says: `ENODEV` for a device that is not there.
    pub fn get(&self, device: &str, group: Group) -> io::Result<Values> {
        let content = self.ask(|sequence| {
            let mut request = Request::new(self.family, sequence, group.get());
            request.nest(HEADER, |header| header.put_text(HEADER_DEVICE, device));
            request.finish()
        });
        match content {
            Ok(content) => Ok(content.map(|content| decode(group, &content)).unwrap_or_default()),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::OPNOTSUPP) => Ok(Values::new()),
            Err(error) => Err(error),
        }
    }

    /// Sets one setting of a device. The device may round it, or keep a feature as it was: read it back.
    ///
    /// # Errors
    /// What the kernel and the driver say: `EINVAL` beyond the largest number, `EOPNOTSUPP` where the driver cannot,
    /// `EPERM` without the right, `EBUSY` and others by the driver.
    pub fn set(&self, device: &str, setting: &Setting, value: u32) -> io::Result<()> {
        self.ask(|sequence| request_to_set(self.family, sequence, device, setting, value)).map(drop)
    }

    /// Sends a request and takes in its answer, up to the message that ends it. The kernel has answered before the
    /// request is sent, so that there is nothing to wait for.
    fn ask(&self, request: impl FnOnce(u32) -> Vec<u8>) -> io::Result<Option<Vec<u8>>> {
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        sendto(&*socket, &request(sequence), SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut buffer = vec![0; ANSWER_BYTES_MAX];
        let mut content = None;
        loop {
            let (filled, sent) = recv(&*socket, &mut buffer[..], RecvFlags::DONTWAIT | RecvFlags::TRUNC)?;
            if sent > filled {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "an answer is longer than any known one",
                ));
            }
            for message in wire::messages(&buffer[..filled], sequence) {
                match message {
                    Message::Content(bytes) => content = Some(bytes.to_vec()),
                    Message::End(0) => return Ok(content),
                    Message::End(code) => return Err(io::Error::from_raw_os_error(code)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The content of an answer: what follows the headers of a message.
    fn content(build: impl FnOnce(&mut Request)) -> Vec<u8> {
        let mut request = Request::new(1, 1, 1);
        build(&mut request);
        let bytes = request.finish();
        let [Message::Content(content)] = wire::messages(&bytes, 1)[..] else { panic!("one message") };
        content.to_vec()
    }

    #[test]
    fn names_are_unique_and_found() {
        for (index, setting) in SETTINGS.iter().enumerate() {
            assert_eq!(Setting::by_name(setting.name), Some(setting));
            assert!(SETTINGS[..index].iter().all(|other| other.name != setting.name), "{}", setting.name);
        }
        assert_eq!(Setting::by_name("rings_mini"), None);
    }

    #[test]
    fn numbers_and_their_limits_are_read() {
        let rings = content(|answer| {
            answer.nest(HEADER, |header| header.put_text(HEADER_DEVICE, "eth0"));
            answer.put(2, &4096_u32.to_le_bytes());
            answer.put(6, &512_u32.to_le_bytes());
        });
        let found = decode(Group::Rings, &rings);
        assert_eq!(found["rings_rx"], Value { value: 512, max: Some(4096), fixed: false });
        assert!(!found.contains_key("rings_tx"), "the card has none");
        let coalesce = content(|answer| {
            answer.put(2, &50_u32.to_le_bytes());
            answer.put(11, &[1]);
        });
        let found = decode(Group::Coalesce, &coalesce);
        assert_eq!(found["coalesce_rx_usecs"], Value { value: 50, max: None, fixed: false });
        assert_eq!(found["coalesce_adaptive_rx"].value, 1);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn a_feature_is_on_off_fixed_or_not_there() {
        // A list of what is on; what the hardware has comes as all names, and a flag at those that are on.
        let list = |answer: &mut Request, kind: u16, names: &[&str]| {
            answer.nest(kind, |bitset| {
                bitset.put(BITSET_NO_MASK, &[]);
                bitset.nest(BITSET_BITS, |bits| {
                    for name in names {
                        bits.nest(BITS_BIT, |bit| bit.put_text(BIT_NAME, name));
                    }
                });
            });
        };
        let all = |answer: &mut Request, kind: u16, on: &[&str]| {
            answer.nest(kind, |bitset| {
                bitset.nest(BITSET_BITS, |bits| {
                    for name in ["rx-lro", "rx-gro", "tx-tcp-segmentation", "rx-ntuple-filter"] {
                        bits.nest(BITS_BIT, |bit| {
                            bit.put_text(BIT_NAME, name);
                            if on.contains(&name) {
                                bit.put(BIT_VALUE, &[]);
                            }
                        });
                    }
                });
            });
        };
        let features = content(|answer| {
            all(answer, FEATURES_HARDWARE, &["rx-gro", "tx-tcp-segmentation", "rx-ntuple-filter"]);
            list(answer, FEATURES_ACTIVE, &["rx-gro", "tx-generic-segmentation"]);
            list(answer, FEATURES_NEVER, &["rx-ntuple-filter"]);
        });
        let found = decode(Group::Features, &features);
        let value = |value, fixed| Value { value, max: None, fixed };
        assert_eq!(found["feature_gro"], value(1, false));
        assert_eq!(found["feature_tso"], value(0, false));
        assert_eq!(found["feature_gso"], value(1, true));
        assert_eq!(found.len(), 3, "LRO and ntuple can never be on: {found:?}");
    }

    /// What `fuzz/targets/cards.rs` starts from. An answer that once broke the reader belongs there.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "it reads files of the checkout")]
    fn every_seed_of_the_fuzzer_is_read() {
        let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fuzz/seeds/cards");
        let mut read = BTreeMap::new();
        for entry in std::fs::read_dir(seeds).expect("the seeds are there") {
            let entry = entry.expect("a file");
            let bytes = std::fs::read(entry.path()).expect("a file");
            let found = Group::ALL.map(|group| decode(group, &bytes).len());
            read.insert(entry.file_name().into_string().expect("a plain name"), found);
            // Whatever is cut off, nothing is read beyond it.
            for length in 0..bytes.len() {
                let _ = Group::ALL.map(|group| decode(group, &bytes[..length]));
            }
        }
        assert!(read["features"][0] >= 4 && read["rings"][1] == 2 && read["coalesce"][3] == 6, "{read:?}");
    }

    #[test]
    fn what_is_set_reads_back_as_the_kernel_takes_it() {
        for setting in SETTINGS {
            for value in [0, 1] {
                let bytes = request_to_set(21, 9, "eth0", setting, value);
                let [Message::Content(content)] = wire::messages(&bytes, 9)[..] else {
                    panic!("one message")
                };
                let all = Attributes(content);
                let header = Attributes(all.find(HEADER).expect("a header"));
                assert_eq!(header.text(HEADER_DEVICE), Some("eth0"));
                assert_eq!(bytes[16], setting.group.get() + 1, "the command");
                if let Form::Feature { name } = setting.form {
                    let wanted = all.find(FEATURES_WANTED).expect("a set of bits");
                    assert_eq!(named_bits(wanted), if value == 1 { vec![name] } else { Vec::new() });
                    let bits = Attributes(wanted).find(BITSET_BITS).expect("bits");
                    let bit = Attributes(Attributes(bits).find(BITS_BIT).expect("a bit"));
                    assert_eq!(bit.text(BIT_NAME), Some(name), "in the mask, on or off");
                } else {
                    assert_eq!(decode(setting.group, content)[setting.name].value, value, "{}", setting.name);
                }
            }
        }
    }

    #[test]
    fn the_loopback_answers_and_what_is_not_there_is_told() {
        let ethtool = match Ethtool::open() {
            Ok(ethtool) => ethtool,
            Err(error) => return planish_skip::skip("ethtool", error),
        };
        let features = ethtool.get("lo", Group::Features).expect("it has features");
        assert!(features.contains_key("feature_gro"), "{features:?}");
        assert_eq!(ethtool.get("lo", Group::Rings).expect("it answers"), Values::new(), "it has no rings");
        let error = ethtool.get("planish-none", Group::Rings).expect_err("no such device");
        assert_eq!(Errno::from_io_error(&error), Some(Errno::NODEV));
    }
}
