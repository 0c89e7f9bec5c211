//! `planish text link-flags`

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use planish_model::Catalogue;
use planish_order::flags::{Builder, Compiler, Linker, Wishes, flags, recipe};
use planish_report::TextLinkFlagsReport;
use planish_workload::parse_bytes;

use crate::answer::Answer;

use crate::context::Context;

/// Print the flags by which a build follows an order, as lines of the tool that builds
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What compiles
    #[arg(long, value_enum, default_value = "gcc")]
    compiler: CompilerName,
    /// What links; rustc's own is lld
    #[arg(long, value_enum, default_value = "lld")]
    linker: LinkerName,
    /// The order, in the form for that linker: planish text order --form
    #[arg(long, value_name = "F")]
    order: Option<String>,
    /// Make text that can lie on huge pages of SIZE
    #[arg(long, value_name = "SIZE", num_args = 0..=1, default_missing_value = "2M", value_parser = parse_bytes)]
    huge: Option<usize>,
    /// Keep frame pointers, for stacks that cost nothing to walk
    #[arg(long)]
    frame_pointers: bool,
    /// Keep relocations for BOLT
    #[arg(long)]
    bolt: bool,
    /// Print lines for this tool
    #[arg(long = "for", value_name = "TOOL", value_parser = tools())]
    tool: Option<String>,
}

fn tools() -> PossibleValuesParser {
    PossibleValuesParser::new(Builder::ALL.map(|(word, _)| word))
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CompilerName {
    Gcc,
    Clang,
    Rustc,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LinkerName {
    Lld,
    Gold,
    /// GNU ld; takes an order from 2.43 on
    Bfd,
}

pub(crate) fn run(args: &Args, context: &Context) -> Answer {
    let compiler = match args.compiler {
        CompilerName::Gcc => Compiler::Gcc,
        CompilerName::Clang => Compiler::Clang,
        CompilerName::Rustc => Compiler::Rustc,
    };
    let linker = match args.linker {
        LinkerName::Lld => Linker::Lld,
        LinkerName::Gold => Linker::Gold,
        LinkerName::Bfd => Linker::Bfd,
    };
    let wishes = Wishes {
        order: args.order.clone(),
        huge_bytes: args.huge.map(|bytes| u64::try_from(bytes).expect("an address is 64 bits at most")),
        frame_pointers: args.frame_pointers,
        bolt: args.bolt,
    };
    let flags = flags(compiler, linker, &wishes);
    let named = args.tool.as_deref();
    let tool = Builder::ALL.into_iter().find(|(word, _)| Some(*word) == named).map(|(_, tool)| tool);
    let recipe = tool.map(|tool| recipe(tool, &flags));
    let report = TextLinkFlagsReport {
        compile: flags.compile,
        link: flags.link,
        file: recipe.as_ref().map(|(file, _)| (*file).to_owned()),
        recipe: recipe.map(|(_, text)| text),
    };
    let mut answer = context.answer(&report, &Catalogue::default());
    if matches!((linker, &wishes.order), (Linker::Bfd, Some(_))) {
        answer =
            answer.warning("GNU ld takes an order from 2.43 on; an older one takes --form linker-script");
    }
    answer.next(context.line("text check BIN"))
}
