//! The arguments, and what each command does with them.

use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches_with_schema;
use futures::TryStreamExt;
use planish_ingest::{Faults, Unit};
use planish_sql::Files;
use planish_table::{Recovery, log::Tail};
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

use crate::bench::{BenchOptions, bench};
use crate::database::Database;
use crate::ddl::is_of_view;
use crate::demo::DemoOptions;
use crate::ended::{Ended, LEFT_OUT};
use crate::failure::{Failure, Kind, chain};
use crate::format::{Format, Heading};
use crate::install::{self, InstallOptions, UninstallOptions};
use crate::load::{FileFormat, Load};
use crate::query::{Asked, Limits, Part, start};
use crate::serving::{self, ServeOptions};
use crate::statement::{STACK_BYTES, without_format};
use crate::tell::tell;
use crate::tokens::{Role, make};

/// As good as for ever.
const LONG: Duration = Duration::from_secs(30 * 365 * 86_400);

/// Time-series tables of a folder: load files, query, serve by HTTP
#[derive(Debug, Parser)]
#[command(name = "planish-series", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(Box<ServeOptions>),
    Load(LoadOptions),
    Query(QueryOptions),
    Token(TokenOptions),
    Bench(BenchOptions),
    Install(InstallOptions),
    Uninstall(UninstallOptions),
}

/// Load files into a table
#[derive(Debug, Args)]
struct LoadOptions {
    /// CSV, TSV, JSON lines, line protocol or streams of Arrow; packed ones end in .gz
    #[arg(required_unless_present = "demo", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The folder of tables; it is made if it is not there
    #[arg(long, value_name = "DIR")]
    into: PathBuf,
    /// The table; lines of line protocol name theirs
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// Columns, to make the table if it is not there: 'ts TIMESTAMP, sym SYMBOL, price DOUBLE'
    #[arg(long, requires = "table", value_name = "COLUMNS")]
    columns: Option<String>,
    /// The format of all files [default: by their names]
    #[arg(long, value_name = "FORMAT")]
    format: Option<FileFormat>,
    /// What times count that are numbers: s, ms, us, ns
    #[arg(long, default_value = "ns", value_name = "UNIT", value_parser = unit)]
    unit: Unit,
    /// Refuse a file with a faulty row as a whole, instead of leaving out the row
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    demo: DemoOptions,
}

/// Answer a query over files, or over the tables of a folder that no server has
#[derive(Debug, Args)]
struct QueryOptions {
    /// One statement of SQL; FROM takes tables, and Parquet, CSV and Arrow files: FROM 'a/*.parquet'
    sql: String,
    /// The folder of tables [default: none, for queries of files]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// How the answer is written [default: table on a terminal, else tsv; or what FORMAT says]
    #[arg(long, value_name = "FORMAT")]
    format: Option<ShellFormat>,
    /// MiB of memory that the query may take
    #[arg(long, default_value = "4096", value_name = "MIB", value_parser = mebibytes(1))]
    memory: u64,
}

/// Make a token for a server, put its hash into a file, and print it
#[derive(Debug, Args)]
struct TokenOptions {
    /// Whose it is
    #[arg(value_parser = token_name)]
    name: String,
    /// What its holder may do
    #[arg(long, default_value = "read")]
    role: Role,
    /// The file of tokens
    #[arg(long, value_name = "FILE")]
    into: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ShellFormat {
    /// Columns for people
    Table,
    /// Tab-separated, with names
    Tsv,
    /// Comma-separated, with names
    Csv,
    /// One object, with columns and rows
    Json,
    /// An object a line
    Jsoneachrow,
    /// A stream of Arrow (IPC)
    Arrow,
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match seconds {
        Some(seconds) if !seconds.is_zero() && seconds <= LONG => Ok(seconds),
        _ => Err("expected a number of seconds above 0".to_owned()),
    }
}

pub(crate) fn mebibytes(least: u64) -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(least..1 << 30)
}

fn unit(text: &str) -> Result<Unit, String> {
    Unit::named(text).ok_or_else(|| "expected s, ms, us or ns".to_owned())
}

fn token_name(text: &str) -> Result<String, String> {
    let is_name =
        !text.is_empty() && text.chars().all(|it| it.is_ascii_alphanumeric() || "-_.@".contains(it));
    if is_name { Ok(text.to_owned()) } else { Err("expected letters, digits, -, _, . and @".to_owned()) }
}

pub(crate) fn bytes_of(mebibytes: u64) -> usize {
    usize::try_from(mebibytes << 20).unwrap_or(usize::MAX)
}

/// Reads the arguments and does what they say.
pub(crate) fn run() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Serve(options) => serving::run(&options),
        Command::Load(options) => load(&options),
        Command::Query(options) => query(&options),
        Command::Token(options) => token(&options),
        Command::Bench(options) => bench(&options),
        Command::Install(options) => install::install(&options),
        Command::Uninstall(options) => install::uninstall(&options),
    };
    match done {
        Ok(code) => code,
        Err(Ended { code, text }) => {
            tell(&text);
            ExitCode::from(code)
        }
    }
}

pub(crate) fn cpus() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

pub(crate) fn open(folder: &Path, threads: NonZeroUsize) -> Result<Database, Ended> {
    let database = Database::open(folder, threads, tell_found)?;
    database.open_views().iter().for_each(|line| tell(line));
    Ok(database)
}

/// Says what was found of a table that is not as it was left.
pub(crate) fn tell_found(name: &str, recovery: &Recovery) {
    let Recovery { tail, lost, removed, .. } = recovery;
    if let Some(tail) = tail {
        let Tail { path, offset, bytes, .. } = tail;
        let path = path.display();
        tell(&format!(
            "{name}: {bytes} bytes at {offset} of {path} were torn when it stopped, and are cut off"
        ));
    }
    if *lost > 0 {
        tell(&format!("{name}: {lost} batches were lost before a salvage"));
    }
    if !removed.is_empty() {
        tell(&format!("{name}: {} files of a flush that was killed are removed", removed.len()));
    }
}

/// Threads for queries, each of which begins with `on_start`.
pub(crate) fn query_threads(
    threads: NonZeroUsize,
    on_start: impl Fn() + Send + Sync + 'static,
) -> Result<Runtime, Ended> {
    let mut runtime = Builder::new_multi_thread();
    runtime.worker_threads(threads.get()).thread_name("query").thread_stack_size(STACK_BYTES);
    built(runtime.on_thread_start(on_start))
}

/// Builds threads that know of sockets and of time.
pub(crate) fn built(runtime: &mut Builder) -> Result<Runtime, Ended> {
    runtime.enable_all().build().map_err(|error| Ended::failed(format!("cannot start threads: {error}")))
}

fn load(options: &LoadOptions) -> Result<ExitCode, Ended> {
    let database = open(&options.into, cpus())?;
    if let Some(trades) = options.demo.demo {
        let made = options.demo.run(trades, &database, tell);
        return match made {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(Failure { kind: Kind::TableExists, text }) => Err(Ended::refused(text)),
            Err(failure) => Err(Ended::failed(failure.text)),
        };
    }
    let load = Load {
        files: &options.files,
        table: options.table.as_deref(),
        columns: options.columns.as_deref(),
        format: options.format,
        unit: options.unit,
        faults: if options.strict { Faults::Refuse } else { Faults::LeaveOut },
    };
    let loaded = load.run(&database, tell)?;
    Ok(if loaded.left_out > 0 { ExitCode::from(LEFT_OUT) } else { ExitCode::SUCCESS })
}

fn query(options: &QueryOptions) -> Result<ExitCode, Ended> {
    if let Some(folder) = options.data.as_ref().filter(|folder| !folder.is_dir()) {
        return Err(Ended::usage(format!("{}: no such folder", folder.display())));
    }
    let (sql, named) = without_format(&options.sql);
    let named = named.map(|name| Format::named(&name)).transpose();
    let named = named.map_err(|failure| Ended::usage(failure.text))?;
    let format = match (options.format, named) {
        (None, Some(format)) => Some(format),
        (None, None) if io::stdout().is_terminal() => None,
        (Some(ShellFormat::Table), _) => None,
        (Some(ShellFormat::Tsv), _) | (None, None) => Some(Format::TabSeparated(Heading::Names)),
        (Some(ShellFormat::Csv), _) => Some(Format::Csv(Heading::Names)),
        (Some(ShellFormat::Json), _) => Some(Format::Json),
        (Some(ShellFormat::Jsoneachrow), _) => Some(Format::JsonEachRow),
        (Some(ShellFormat::Arrow), _) => Some(Format::ArrowStream),
    };
    if is_of_view(sql) {
        return change_view(options.data.as_deref(), sql);
    }
    let database = match &options.data {
        Some(folder) => open(folder, cpus())?,
        None => Database::without_folder(cpus())?,
    };
    let allowed = database.engine().allow_files(Files::Any);
    allowed.map_err(|error| Ended::failed(chain(&error)))?;
    match format {
        None => table(database, sql, bytes_of(options.memory)),
        Some(format) => stream(database, sql, format, bytes_of(options.memory)),
    }
}

/// Makes or drops a view.
fn change_view(folder: Option<&Path>, sql: &str) -> Result<ExitCode, Ended> {
    let folder = folder.ok_or_else(|| Ended::usage("a view is of a table: say --data DIR"))?;
    match open(folder, cpus())?.change_view(sql) {
        Ok(_) => Ok(ExitCode::SUCCESS),
        Err(failure) => Err(Ended::refused(failure.text)),
    }
}

/// All of an answer as a table for people.
fn table(database: Database, sql: &str, memory_bytes: usize) -> Result<ExitCode, Ended> {
    let runtime = query_threads(cpus(), || ())?;
    let sql = sql.to_owned();
    let work = runtime.spawn(async move {
        let stream = database.engine().stream_within(&sql, memory_bytes).await?;
        let schema = stream.schema();
        Ok::<_, Failure>((schema, stream.try_collect::<Vec<_>>().await?))
    });
    let answer = runtime.block_on(work).map_err(|_| Ended::failed("the query broke off"))?;
    let (schema, batches) = answer.map_err(|failure| Ended::failed(failure.text))?;
    let text = pretty_format_batches_with_schema(schema, &batches);
    let text = text.map_err(|error| Ended::failed(error.to_string()))?;
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    written(writeln!(io::stdout(), "{text}\n{rows} rows"))
}

/// An answer as it comes.
fn stream(database: Database, sql: &str, format: Format, memory_bytes: usize) -> Result<ExitCode, Ended> {
    let runtime = query_threads(cpus(), || ())?;
    let limits = Limits { until: Instant::now() + LONG, time: LONG, memory_bytes };
    let asked = Asked { sql: sql.to_owned(), format, is_packed: false };
    let mut running = start(runtime.handle(), Arc::new(database), asked, limits, None);
    let mut stdout = io::stdout().lock();
    loop {
        match running.parts.blocking_recv() {
            Some(Part::Chunk(chunk)) => {
                if let Err(error) = stdout.write_all(&chunk) {
                    return written(Err(error));
                }
            }
            Some(Part::End { .. }) => return written(stdout.flush()),
            Some(Part::Failed(failure)) => return Err(Ended::failed(failure.text)),
            None => return Err(Ended::failed("the query broke off")),
        }
    }
}

/// Whoever has read enough has all that was wanted.
fn written(result: io::Result<()>) -> Result<ExitCode, Ended> {
    match result {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Ended::failed(format!("cannot write the answer: {error}"))),
    }
}

fn token(options: &TokenOptions) -> Result<ExitCode, Ended> {
    let token = make(&options.name, options.role, &options.into);
    let token = token.map_err(|error| Ended::failed(chain(&error)))?;
    written(writeln!(io::stdout(), "{token}"))
}
