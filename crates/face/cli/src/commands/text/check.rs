//! `planish text check`

use std::path::PathBuf;

use planish_model::{Catalogue, Exit};
use planish_profile::{Allows, FileKind};
use planish_report::{TextCheckReport, TextCheckRow, units};
use planish_workload::parse_bytes;

use super::{huge_bytes, in_file};
use crate::answer::Answer;
use crate::commands::read_file;
use crate::context::Context;
use crate::failure::Failure;

/// From this share of functions on, a program was compiled with frame pointers.
const FRAME_POINTERS_MIN: f64 = 0.5;

/// Tell what a program allows (huge pages, an order, stacks) and the flag that would mend each
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A program, a shared library or an object file
    #[arg(value_name = "BIN")]
    program: PathBuf,
    /// Check for huge pages of SIZE; without it, for those of this kernel
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    page: Option<usize>,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Answer, Failure> {
    let huge = huge_bytes(args.page)?;
    let bytes = read_file(&args.program)?;
    let allows = Allows::parse(&bytes, huge).map_err(|source| in_file(&args.program, source))?;
    let rows = rows(&allows, huge);
    let short = rows.iter().any(|row| row.good == Some(false));
    let program = args.program.display().to_string();
    let report = TextCheckReport { program, page_bytes: huge, rows };
    let answer = context.answer(&report, &Catalogue::default());
    if short {
        return Ok(answer
            .exit(Exit::Findings)
            .next(context.line("text link-flags --huge --order order.txt --for make")));
    }
    Ok(answer.next(context.line(&format!("text verify {}", args.program.display()))))
}

fn rows(allows: &Allows, huge: u64) -> Vec<TextCheckRow> {
    let mut rows = Vec::new();
    let mut row = |what: &str, good: Option<bool>, found: String, cure: &str| {
        let cure = (good != Some(true)).then(|| cure.to_owned());
        rows.push(TextCheckRow { what: what.to_owned(), good, found, cure });
    };
    if allows.kind == FileKind::Object {
        let sections = allows.function_sections;
        row("function sections", sections, "an object file".to_owned(), "-ffunction-sections");
        return rows;
    }
    let (size, text) = (format!("-z max-page-size={huge}"), units::bytes(allows.text_bytes));
    row(
        "whole huge pages",
        Some(allows.whole_bytes > 0),
        format!("{} of {text} of text", units::bytes(allows.whole_bytes)),
        "too little text: an order keeps the hot part on few base pages",
    );
    let apart = "offsets and addresses differ";
    row(
        "congruent",
        Some(allows.congruent),
        (if allows.congruent { "offsets fit addresses" } else { apart }).to_owned(),
        &format!("{size} with -z separate-loadable-segments (lld) or -z separate-code (GNU ld)"),
    );
    let found = match (allows.kind, allows.aligned) {
        (FileKind::Executable, _) => "linked to fixed addresses",
        (_, true) => "p_align is a huge page",
        (FileKind::Library, false) => "p_align is below a huge page; some file systems align large libraries",
        (_, false) => "p_align is below a huge page",
    };
    let aligned = (allows.aligned || allows.kind != FileKind::Library).then_some(allows.aligned);
    row("aligned when loaded", aligned, found.to_owned(), &size);
    let written =
        if allows.text_relocations { "the loader writes into the text" } else { "none in the text" };
    row(
        "text relocations",
        Some(!allows.text_relocations),
        written.to_owned(),
        "compile with -fPIC or -fPIE",
    );
    let symbols = format!("{} functions", allows.symbols);
    row("symbols", Some(allows.symbols > 0), symbols, "link without -s, or keep the file before strip");
    let id = if allows.build_id { "there" } else { "missing" };
    row("build id", Some(allows.build_id), id.to_owned(), "-Wl,--build-id");
    let share = |share: f64| format!("set up by {:.0} % of the larger functions", share * 100.0);
    row(
        "frame pointers",
        allows.frame_pointers.map(|share| share >= FRAME_POINTERS_MIN),
        allows.frame_pointers.map_or_else(|| "cannot be told".to_owned(), share),
        "-fno-omit-frame-pointer (rustc: -Cforce-frame-pointers=yes)",
    );
    let linked = "a linked file does not show them; check an object file".to_owned();
    row("function sections", None, linked, "-ffunction-sections (rustc has them)");
    let kept = if allows.relocations { "kept" } else { "dropped: BOLT cannot move functions" };
    row("relocations for BOLT", allows.relocations.then_some(true), kept.to_owned(), "-Wl,--emit-relocs");
    if allows.linkage_bytes > 0 {
        let stubs = format!("{} of stubs", units::bytes(allows.linkage_bytes));
        row("calls without stubs", None, stubs, "-fno-plt, where profiles show them hot");
    }
    rows
}
