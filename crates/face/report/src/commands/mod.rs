//! One file per command: the value that it ends with, and how that value reads.

mod apply;
mod c2c;
mod check;
mod confirm;
mod doctor;
mod exchange;
mod host;
mod install;
mod jitter;
mod knobs;
mod lab;
mod latency;
mod log;
mod map;
mod placement;
mod plan;
mod profiles;
mod relocate;
mod run;
mod service;
mod size;
mod text;
mod text_bolt;
mod text_huge;
mod text_link;
mod text_order;
mod text_picture;
mod text_prune;
mod text_publish;
mod text_record;
mod top;
mod topo;
mod trial;
mod undo;
mod version;

pub use apply::ApplyReport;
pub use c2c::{C2cLine, C2cReport, C2cSite};
pub use check::{CheckReport, CheckTextRow};
pub use confirm::ConfirmReport;
pub use doctor::{DoctorReport, KnobCounts};
pub use exchange::{ExportReport, ExportRow, ImportReport, ImportRow, LeftOutRow};
pub use host::{Difference, HostDiffReport, HostRecordReport};
pub use install::{InstallCheckReport, InstallFile, InstallPublishReport, InstallWarmReport};
pub use jitter::{
    JitterBucket, JitterCpu, JitterGaps, JitterQuantile, JitterReport, JitterSource, JitterWake,
};
pub use knobs::{KnobRow, KnobsReport};
pub use lab::{HonestyReport, ProveConnReport, TrialNewReport};
pub use latency::{
    LatencyBacking, LatencyClusters, LatencyFigure, LatencyInterleave, LatencyInterleaveVerdict, LatencyNode,
    LatencyPage, LatencyPair, LatencyPartition, LatencyQuiet, LatencyReport,
};
pub(crate) use latency::{range, step};
pub use log::LogReport;
pub use map::{
    MapArea, MapBackend, MapBacking, MapBuffers, MapChange, MapJit, MapKind, MapNode, MapPart, MapPicture,
    MapPiece, MapPostgres, MapPrivate, MapProcess, MapQuery, MapReport, MapRow, MapSeenBy, MapThreads,
    MapTotals,
};
pub use profiles::{ProfileRow, ProfileWant, ProfilesReport};
pub use relocate::{MoveLeft, MoveNode, MoveProcess, MoveRange, MoveReport, MoveStayed, MoveThreads};
pub use run::{RunInstance, RunPrivate, RunReport, RunSegment, RunShare, RunText, RunVariable};
pub use text::{TextImportReport, TextMergeReport, TextProfileFacts, TextShowReport};
pub use text_bolt::{TextBoltCheckRow, TextBoltFile, TextBoltReport, TextBoltSkipRow};
pub use text_huge::{TextActionRow, TextCacheRow, TextHugeReport, TextPrepared, TextRouteRow, TextRunnerRow};
pub use text_link::{TextCheckReport, TextCheckRow, TextLinkFlagsReport, TextProcessRow, TextVerifyReport};
pub use text_order::{TextAutoFdo, TextOrderReport, TextOrderRow};
pub use text_picture::{TextBox, TextFlame, TextFlames, TextGroup, TextObject, TextPicture};
pub use text_prune::{TextPruneReport, TextPruneRow};
pub use text_publish::{TextFetchReport, TextFetched, TextPinCommit, TextPinFacts, TextPublishReport};
pub use text_record::{TextRecordReport, TextRecordSource};
pub use top::{
    TOP_NODE_TITLES, TOP_TITLES, TopReport, TopSort, top_cells, top_node_cells, top_sample_line,
    top_sample_of, top_user_cell,
};
pub use topo::{CacheRow, CpuRow, DeviceRow, NodeRow, OddityRow, TopoReport};
pub use trial::{
    ProveReport, SelfCheckReport, TrialResumeReport, TrialRunReport, TrialStatusReport, TrialStopReport,
};
pub use undo::{UndoReport, UndoneEntry};
pub use version::VersionReport;
