//! The address space of a process as a picture has it: its mappings in order, the large ones cut into cells.

use planish_residency::{AreaPages, CELLS, CUT_BYTES_MIN, Map, Part, sum_of};
use planish_sorted::SortSmall as _;
use schemars::JsonSchema;
use serde::Serialize;

use super::{MapBacking, MapKind};

/// Areas of a picture: the ones with most memory.
const AREAS_MAX: usize = 48;

/// Resident memory on pages of one size on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MapPart {
    /// On which pages it lies.
    pub backing: MapBacking,
    /// NUMA node; null where nobody tells.
    pub node: Option<u32>,
    /// Size of one of its pages in bytes.
    pub page_bytes: u64,
    /// Resident bytes.
    pub resident_bytes: u64,
    /// Whether that is about right only, as of a row.
    pub estimated: bool,
}

/// Neighbouring mappings of one kind and name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MapArea {
    /// First address.
    pub start: String,
    /// The address after the last.
    pub end: String,
    /// Bytes that they map.
    pub bytes: u64,
    /// How many mappings.
    pub mappings: usize,
    /// What they are for.
    pub kind: MapKind,
    /// Their name; empty for plain anonymous memory.
    pub name: String,
    /// What of them is in memory.
    pub parts: Vec<MapPart>,
    /// Of a large area of one mapping, what is in memory in each of its equal cells; empty for others.
    pub cells: Vec<Vec<MapPart>>,
}

/// The address space of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MapPicture {
    /// Its PID.
    pub pid: u32,
    /// Areas with memory, by address.
    pub areas: Vec<MapArea>,
    /// Areas that are left out because others have more.
    pub left_out: usize,
    /// Resident bytes of these.
    pub left_out_bytes: u64,
    /// Whether a part of those is an estimate.
    pub left_out_estimated: bool,
}

impl From<&Part> for MapPart {
    fn from(part: &Part) -> Self {
        let Part { backing, node, page_bytes, bytes, estimated } = *part;
        Self { backing: backing.into(), node, page_bytes, resident_bytes: bytes, estimated }
    }
}

impl MapArea {
    /// Bytes of it that are in memory.
    pub(crate) fn resident_bytes(&self) -> u64 {
        sum_of(self.parts.iter().map(|part| part.resident_bytes))
    }

    /// Whether a part of those is an estimate.
    pub(crate) fn is_estimated(&self) -> bool {
        self.parts.iter().any(|part| part.estimated)
    }
}

impl MapPicture {
    /// The picture of the first process of a map.
    pub(super) fn of(map: &Map) -> Self {
        let Some(member) = map.members.first() else { return Self::default() };
        let groups = member.areas.chunk_by(|a, b| a.area.kind == b.area.kind && a.area.name == b.area.name);
        let mut areas: Vec<(u64, MapArea)> = groups.map(|group| area(map, group)).collect();
        areas.retain(|(_, area)| area.resident_bytes() > 0);
        areas.sort_small_by_key(|(_, area)| std::cmp::Reverse(area.resident_bytes()));
        let rest = areas.split_off(areas.len().min(AREAS_MAX));
        areas.sort_small_by_key(|(start, _)| *start);
        Self {
            pid: member.pid,
            areas: areas.into_iter().map(|(_, area)| area).collect(),
            left_out: rest.len(),
            left_out_bytes: sum_of(rest.iter().map(|(_, area)| area.resident_bytes())),
            left_out_estimated: rest.iter().any(|(_, area)| area.is_estimated()),
        }
    }
}

/// Neighbours as one area, and where it starts.
fn area(map: &Map, group: &[AreaPages]) -> (u64, MapArea) {
    let (first, last) = (&group[0].area, &group[group.len() - 1].area);
    let mut parts = Vec::new();
    for pages in group {
        for part in parts_of(map, pages, 0..1, 1) {
            add(&mut parts, part);
        }
    }
    let cells = if group.len() == 1 { cells_of(map, &group[0]) } else { Vec::new() };
    let area = MapArea {
        start: format!("{:x}", first.range.start),
        end: format!("{:x}", last.range.end),
        bytes: sum_of(group.iter().map(|pages| pages.area.bytes())),
        mappings: group.len(),
        kind: first.kind.into(),
        name: first.name.clone(),
        parts,
        cells,
    };
    (first.range.start, area)
}

/// What is in memory in each of the cells of a large mapping, where places are known.
fn cells_of(map: &Map, pages: &AreaPages) -> Vec<Vec<MapPart>> {
    let by_place = pages.object.is_some_and(|object| map.objects[object].pages.tells_places());
    if !by_place || pages.area.bytes() < CUT_BYTES_MIN {
        return pages.cells.iter().map(|cell| cell.iter().map(MapPart::from).collect()).collect();
    }
    let count = CELLS as u64;
    (0..count).map(|cell| parts_of(map, pages, cell..cell + 1, count)).collect()
}

/// What is in memory in the cells `range` of `of` equal ones; of private memory only the whole is known.
fn parts_of(map: &Map, pages: &AreaPages, range: std::ops::Range<u64>, of: u64) -> Vec<MapPart> {
    let Some(object) = pages.object else { return pages.parts.iter().map(MapPart::from).collect() };
    let Some(extent) = pages.area.extent() else { return Vec::new() };
    let at = |cell: u64| {
        let bytes = u128::from(extent.end - extent.start) * u128::from(cell) / u128::from(of);
        extent.start + u64::try_from(bytes).expect("a part of the extent")
    };
    let parts = map.objects[object].pages.parts(&(at(range.start)..at(range.end)));
    parts.iter().map(MapPart::from).collect()
}

/// Adds a part to those that it is alike.
pub(super) fn add(parts: &mut Vec<MapPart>, part: MapPart) {
    let key = |part: &MapPart| (part.backing, part.node, part.page_bytes);
    match parts.iter_mut().find(|known| key(known) == key(&part)) {
        Some(known) => {
            known.resident_bytes = sum_of([known.resident_bytes, part.resident_bytes]);
            known.estimated |= part.estimated;
        }
        None => parts.push(part),
    }
}
