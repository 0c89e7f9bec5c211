//! `planish topo`

use planish_model::Catalogue;
use planish_report::TopoReport;
use planish_topo::Topology;

use crate::answer::Answer;
use crate::context::Context;
use crate::failure::Failure;

/// Show CPUs, caches, NUMA nodes and where devices are attached
#[derive(Debug, clap::Args)]
pub(crate) struct Args;

pub(crate) fn run(context: &Context) -> Result<Answer, Failure> {
    let topology = Topology::read(&context.host()?);
    let answer = context.answer(&TopoReport::from(&topology), &Catalogue::default());
    Ok(answer.next(context.line("doctor")))
}
