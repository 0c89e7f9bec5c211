//! How many huge pages a service needs, with the arithmetic.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The pool of one page size on one node that a service needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SizeRow {
    /// The node; `None` for a kernel without NUMA.
    pub node: Option<u32>,
    /// Page size in bytes.
    pub page_bytes: u64,
    /// Pages that the service needs on this node, headroom included.
    pub pages: u64,
    /// The same in bytes.
    pub bytes: u64,
    /// Pages of them that the service has from the pool already, whoever reserved them.
    pub used: u64,
    /// Pages of the pool that nobody uses now.
    pub free: u64,
    /// Pages of this size that lie whole in the free blocks of the node now; `null` where `/proc/buddyinfo` cannot
    /// tell, as for pages larger than any block that the kernel keeps.
    pub fits: Option<u64>,
    /// Why the host must not give that much: it would not keep its reserve.
    pub refused: Option<String>,
}

impl SizeRow {
    /// Pages that a pool would still have to grow by.
    #[must_use]
    pub fn wanted(&self) -> u64 {
        self.pages.saturating_sub(self.used)
    }
}

/// The answer of `planish size`: alternatives by page size, each spread over the nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sizing {
    /// What was sized: `postgres (pid 812)`, `3 regions of 1.0 GiB`.
    pub subject: String,
    /// The name of the service's program, where one was sized: pages are held for it under this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Bytes that the service maps, without headroom.
    pub need_bytes: u64,
    /// Headroom on top of the need, in percent.
    pub headroom_percent: u32,
    /// One row a page size and node.
    pub rows: Vec<SizeRow>,
    /// The arithmetic, line by line, for people.
    pub arithmetic: Vec<String>,
}
