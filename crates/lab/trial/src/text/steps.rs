//! The steps by which programs are made, each a command that a user could type.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use planish_sys::affinity;
use serde_json::{Value, json};

use super::folder::Folder;
use super::{FOLDER, HUGE_LEAST, Made, PROGRAM, told};
use crate::build::fingerprint;
use crate::child::{Launch, run_once};
use crate::error::TrialError;
use crate::file::{TextSpec, TextWord};
use crate::run::RunOptions;
use crate::sample::ArmError;

/// How long the build may take, and each step after it.
const BUILD_LIMIT: Duration = Duration::from_secs(3 * 3600);
const STEP_LIMIT: Duration = Duration::from_secs(3600);

/// Samples a second: a run of a few seconds shall name more than the hottest functions.
const RATE_HZ: &str = "19997";

/// The orders that are tried, of those that `text order` knows.
const ORDERS: [&str; 4] = ["c3", "cdsort", "density", "weight"];

/// Flags of every link: text that fits huge pages, and relocations for BOLT. So arms differ in nothing else.
const FLAGS: &str =
    "-fuse-ld=lld -Wl,--emit-relocs -Wl,-z,max-page-size=2097152 -Wl,-z,separate-loadable-segments";

/// The file name of every program.
const NAME: &str = "program";

/// What all steps share.
pub(super) struct Steps<'a> {
    pub(super) folder: &'a Folder,
    pub(super) spec: &'a TextSpec,
    /// What the profile is recorded of.
    pub(super) sample: Vec<String>,
    /// The user's own source.
    pub(super) source: Option<PathBuf>,
    pub(super) options: &'a RunOptions,
}

impl Steps<'_> {
    /// Brings and compiles the source, where that has not been done by these very commands.
    pub(super) fn build(&self) -> Result<(), TrialError> {
        // The link is of what was built, by words that may have changed with it.
        let of = format!("{:?}\n{:?}\n{:?}\n", self.spec.build, self.spec.link, self.source);
        if self.spec.build.is_empty() || self.folder.is_built(&of) {
            return Ok(());
        }
        self.folder.begin()?;
        let launch = Launch { loud: true, ..self.launch(&self.spec.build, []) };
        run_once(&launch, 0, BUILD_LIMIT, &self.options.stop)
            .map_err(|error| self.refused("`build` fails", error))?;
        self.folder.built(&of)
    }

    /// The program as it was linked, with a profile of it.
    pub(super) fn base(&self) -> Result<Made, TrialError> {
        self.folder.empty("base")?;
        let fails = |error| self.refused("the program as it is linked", error);
        self.link("base", "").map_err(fails)?;
        self.look("base", BTreeMap::new()).map_err(fails)
    }

    /// A program that is laid out otherwise.
    pub(super) fn lay_out(&self, layout: TextWord) -> Result<Made, ArmError> {
        let name = told::words(&[layout]);
        self.folder.empty(&name).map_err(|error| ArmError::crashed(error.to_string()))?;
        let base = self.program("base").display().to_string();
        let profile = self.profile("base").display().to_string();
        let order = self.path(&name, "order").display().to_string();
        let facts = match layout {
            TextWord::Order => self.ordered(&name, &base, &profile)?,
            TextWord::LldCdsort => {
                let words =
                    ["text", "order", &base, "--profile", &profile, "--algorithm", "cdsort", "--form"];
                self.planish(&[&words[..], &["call-graph", "--output", &order]].concat())?;
                let sort = "-Wl,--call-graph-profile-sort=cdsort";
                self.link(&name, &format!("-Wl,--call-graph-ordering-file={order} {sort}"))?;
                BTreeMap::new()
            }
            TextWord::BoltFunctions => {
                told::bolt(&self.bolt(&name, &["--profile", &profile, "--layout", "functions"])?)
            }
            TextWord::Bolt => {
                let counts = self.counted(&base)?.display().to_string();
                told::bolt(&self.bolt(&name, &["--profile", &counts, "--layout", "blocks"])?)
            }
            TextWord::Huge => unreachable!("it is no layout"),
        };
        self.look(&name, facts)
    }

    /// The program in the best of our orders: linked in each of them and run under valgrind, where the trial says how,
    /// else as the walk of `text order` chooses. The walk knows the profile; a trace is of the program itself.
    fn ordered(&self, name: &str, base: &str, profile: &str) -> Result<BTreeMap<String, Value>, ArmError> {
        let lost = |error: std::io::Error| ArmError::crashed(format!("an order: {error}"));
        let link = |order: &str, words: &[&str]| {
            let file = self.path(name, order).display().to_string();
            let all = ["text", "order", base, "--profile", profile, "--output", &file];
            let result = self.planish(&[&all[..], words].concat())?;
            let flags = format!("-Wl,--no-warn-symbol-ordering -Wl,--symbol-ordering-file={file}");
            self.link(name, &flags).map(|()| result)
        };
        let mut traced: BTreeMap<&str, BTreeMap<String, Value>> = BTreeMap::new();
        for order in ORDERS.into_iter().filter(|_| !self.spec.trace.is_empty()) {
            link(order, &["--algorithm", order])?;
            let program = self.program(name);
            traced.insert(order, self.trace(&program, &told::SIMULATED)?);
            fs::rename(&program, self.path(name, &format!("{order}.program"))).map_err(lost)?;
        }
        let cost = |(order, misses): (&&'static str, &BTreeMap<String, Value>)| {
            told::fetch_cost(misses).map(|cost| (*order, cost))
        };
        let best = traced.iter().filter_map(cost).min_by(|one, other| one.1.total_cmp(&other.1));
        let Some((best, _)) = best else { return link("order", &[]).map(|result| told::order(&result)) };
        fs::rename(self.path(name, &format!("{best}.program")), self.program(name)).map_err(lost)?;
        Ok([("order".to_owned(), json!(best)), ("orders_traced".to_owned(), json!(traced))].into())
    }

    /// A copy of a program whose text is on huge pages of the page cache.
    pub(super) fn on_huge_pages(&self, arm: &str, laid: &Made) -> Result<Made, ArmError> {
        let lost = |error: std::io::Error| ArmError::crashed(format!("a copy for huge pages: {error}"));
        let folder =
            self.folder.empty(&format!("arm-{arm}")).map_err(|error| ArmError::crashed(error.to_string()))?;
        let program = folder.join(NAME);
        fs::copy(&laid.program, &program).map_err(lost)?;
        let text = program.display().to_string();
        let least = format!("{}", 100.0 * HUGE_LEAST);
        let result = self.planish(&["text", "huge", &text, "--least", &least])?;
        let route = result.get("route").cloned().unwrap_or_default();
        let mut facts = laid.facts.clone();
        facts.extend(cached(&program, self.options)?);
        facts.insert("text_huge_route".to_owned(), route);
        facts.extend(self.trace(&program, &[told::SIMULATED_HUGE])?);
        facts.extend(identity(&program)?);
        Ok(Made { program, facts })
    }

    /// Links the program into a folder of its own.
    fn link(&self, name: &str, flags: &str) -> Result<(), ArmError> {
        let out = self.program(name).display().to_string();
        let flags = format!("{FLAGS} {flags}").trim_end().to_owned();
        let launch = self.launch(&self.spec.link, [("PLANISH_OUT", out.clone()), ("PLANISH_FLAGS", flags)]);
        self.run(&launch)?;
        if Path::new(&out).is_file() {
            return Ok(());
        }
        Err(ArmError::crashed(format!("`link` ended well and made no {out} (PLANISH_OUT)")))
    }

    /// Lays a program out by BOLT.
    fn bolt(&self, name: &str, words: &[&str]) -> Result<Value, ArmError> {
        let (base, out) =
            (self.program("base").display().to_string(), self.program(name).display().to_string());
        self.planish(&[&["text", "bolt", &base, "--output", &out][..], words].concat())
    }

    /// The branches of the program, counted by BOLT's own instructions in it.
    fn counted(&self, base: &str) -> Result<PathBuf, ArmError> {
        let lost = |error: TrialError| ArmError::crashed(error.to_string());
        let instrumented = self.folder.empty("instrumented").map_err(lost)?.join(NAME);
        // It writes them as the user that it runs as.
        let counts = self.folder.shared("counts").map_err(lost)?.join("branches");
        let (out, fdata) = (instrumented.display().to_string(), counts.display().to_string());
        self.planish(&["text", "bolt", base, "--instrument", "--output", &out, "--fdata", &fdata])?;
        self.run(&self.launch(&self.sample, [(PROGRAM, out)]))?;
        Ok(counts)
    }

    /// What is told of a program: the pages that its samples lie on, and what it misses.
    fn look(&self, name: &str, mut facts: BTreeMap<String, Value>) -> Result<Made, ArmError> {
        let (program, profile) = (self.program(name), self.profile(name));
        let text = program.display().to_string();
        let out = profile.display().to_string();
        let report = self.path(name, "report").display().to_string();
        let own = self.options.program.display().to_string();
        let words =
            [&own, "text", "record", "--rate", RATE_HZ, "--program", &text, "--output", &out, "--quiet"];
        let words = words.into_iter().chain(["--report", &report, "--"]).map(str::to_owned);
        let words: Vec<String> = words.chain(self.sample.iter().cloned()).collect();
        self.run(&self.launch(&words, [(PROGRAM, text.clone())]))?;
        let verified = self.planish(&["text", "verify", &text, "--profile", &out])?;
        facts.extend(told::verify(&verified));
        facts.extend(self.trace(&program, &told::SIMULATED)?);
        facts.extend(identity(&program)?);
        Ok(Made { program, facts })
    }

    /// What a cache and a TLB for instructions miss, where the trial says how to run the program under valgrind.
    fn trace(&self, program: &Path, of: &[(&str, &str)]) -> Result<BTreeMap<String, Value>, ArmError> {
        let mut facts = BTreeMap::new();
        for (cache, fact) in of.iter().filter(|_| !self.spec.trace.is_empty()) {
            let tracer =
                format!("valgrind --tool=cachegrind --cache-sim=yes --cachegrind-out-file=/dev/null {cache}");
            let text = program.display().to_string();
            let launch = self.launch(&self.spec.trace, [(PROGRAM, text), ("PLANISH_TRACER", tracer)]);
            let told = match run_once(&launch, 0, STEP_LIMIT, &self.options.stop) {
                Err(ArmError::Stopped) => return Err(ArmError::Stopped),
                Ok(done) => told::misses(&done.stderr).map(|misses| json!(misses)),
                // Explains and decides nothing: without it the arm is measured all the same.
                Err(error) => Some(json!(format!("not simulated: {error}"))),
            };
            facts.insert(
                (*fact).to_owned(),
                told.unwrap_or_else(|| json!("not simulated: valgrind told no misses")),
            );
        }
        Ok(facts)
    }

    /// Runs planish, and gives the result of its JSON.
    fn planish(&self, words: &[&str]) -> Result<Value, ArmError> {
        let state = self.folder.path().join("state").display().to_string();
        ask(self.options, &[words, &["--state", &state]].concat())
    }

    fn run(&self, launch: &Launch) -> Result<(), ArmError> {
        run_once(launch, 0, STEP_LIMIT, &self.options.stop).map(drop)
    }

    /// A command of the file, in the folder, with what it finds in its environment.
    fn launch<'v>(&self, command: &[String], more: impl IntoIterator<Item = (&'v str, String)>) -> Launch {
        let cpus = affinity::get(None).map_or(1, |cpus| cpus.count().max(1));
        let own = [
            ("PLANISH", self.options.program.display().to_string()),
            ("PLANISH_JOBS", cpus.to_string()),
            (FOLDER, self.folder.path().display().to_string()),
            (
                "PLANISH_SOURCE",
                self.source.as_ref().map(|path| path.display().to_string()).unwrap_or_default(),
            ),
        ];
        let env = own.into_iter().chain(more).map(|(name, value)| (name.to_owned(), value)).collect();
        Launch { env, folder: Some(self.folder.path().to_owned()), ..Launch::of(command.to_vec()) }
    }

    fn path(&self, name: &str, file: &str) -> PathBuf {
        self.folder.path().join(name).join(file)
    }

    fn program(&self, name: &str) -> PathBuf {
        self.path(name, NAME)
    }

    fn profile(&self, name: &str) -> PathBuf {
        self.path(name, "profile")
    }

    fn refused(&self, what: &str, error: ArmError) -> TrialError {
        match error {
            ArmError::Stopped => TrialError::Stopped,
            error => TrialError::Refused {
                what: format!("[text]: {what}: {error}"),
                cure: format!(
                    "its commands run in {}, where they can be tried by hand",
                    self.folder.path().display()
                ),
            },
        }
    }
}

/// What the page cache has of a program's text now.
pub(super) fn cached(program: &Path, options: &RunOptions) -> Result<BTreeMap<String, Value>, ArmError> {
    ask(options, &["text", "verify", &program.display().to_string()]).map(|result| told::verify(&result))
}

/// Runs planish with these words, and gives the result of its JSON. An exit code that is a finding has one, too.
fn ask(options: &RunOptions, words: &[&str]) -> Result<Value, ArmError> {
    let own = options.program.display().to_string();
    // An error is in the JSON as well, and in better words than an exit code has.
    let shell = ["sh", "-c", "\"$@\" || :", "sh", &own, "--json", "--quiet"];
    let command = shell.iter().chain(words).map(|word| (*word).to_owned()).collect();
    let done = run_once(&Launch::of(command), 0, STEP_LIMIT, &options.stop)?;
    let named = words.iter().take(2).copied().collect::<Vec<_>>().join(" ");
    told::result(&done.stdout).map_err(|why| ArmError::unavailable(format!("planish {named}: {why}")))
}

/// Which bytes a verdict is of.
fn identity(program: &Path) -> Result<BTreeMap<String, Value>, ArmError> {
    let sha256 = fingerprint(program)?;
    let path = program.display().to_string();
    Ok([("program".to_owned(), json!(path)), ("program_sha256".to_owned(), json!(sha256))].into())
}
