//! `planish text link-flags`

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use planish_model::Catalogue;
use planish_order::flags::{Builder, Compiler, Linker, Wishes, flags, recipe};
use planish_report::TextLinkFlagsReport;
use planish_workload::parse_bytes;

use crate::answer::Answer;
use crate::context::Context;
use crate::failure::Failure;

/// Print the flags by which a build follows an order, as lines of the tool that builds
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What compiles; without it gcc, and rustc for cargo
    #[arg(long, value_enum)]
    compiler: Option<CompilerName>,
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

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let named = args.tool.as_deref();
    let tool = Builder::ALL.into_iter().find(|(word, _)| Some(*word) == named).map(|(_, tool)| tool);
    let compiler = compiler(args.compiler, tool)?;
    let linker = match args.linker {
        LinkerName::Lld => Linker::Lld,
        LinkerName::Gold => Linker::Gold,
        LinkerName::Bfd => Linker::Bfd,
    };
    let wishes = Wishes {
        order: args.order.as_deref().map(|order| where_links_run(order, tool)),
        huge_bytes: args.huge.map(|bytes| u64::try_from(bytes).expect("an address is 64 bits at most")),
        frame_pointers: args.frame_pointers,
        bolt: args.bolt,
    };
    let flags = flags(compiler, linker, &wishes);
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
    Ok(answer.next(context.line("text check BIN")))
}

/// The compiler that a tool runs: cargo has one alone.
fn compiler(named: Option<CompilerName>, tool: Option<Builder>) -> Result<Compiler, Failure> {
    let is_cargo = tool == Some(Builder::Cargo);
    match named {
        Some(CompilerName::Gcc | CompilerName::Clang) if is_cargo => {
            let failed = Failure::usage("cargo compiles by rustc, which takes no flags of another compiler");
            Err(failed.hint("planish text link-flags --for cargo"))
        }
        None if is_cargo => Ok(Compiler::Rustc),
        Some(CompilerName::Rustc) => Ok(Compiler::Rustc),
        Some(CompilerName::Clang) => Ok(Compiler::Clang),
        None | Some(CompilerName::Gcc) => Ok(Compiler::Gcc),
    }
}

/// The order by a name that is the same wherever a link runs: CMake, Meson and cargo link in folders of their own. What
/// builds in a tree of its own has no names of this machine.
fn where_links_run(order: &str, tool: Option<Builder>) -> String {
    let is_apart = matches!(tool, Some(Builder::Dockerfile | Builder::Bazel | Builder::Buck2));
    let absolute = Some(order).filter(|_| !is_apart).and_then(|order| std::path::absolute(order).ok());
    absolute.map_or_else(|| order.to_owned(), |path| path.to_string_lossy().into_owned())
}
