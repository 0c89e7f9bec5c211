//! Trials whose arms are boots of the machine.
//!
//! The machine is started anew by the trial itself, again and again, and a unit of systemd goes on after each boot. An
//! arm is booted by an entry that the loader takes once ([`planish_pipeline::apply_once`]), so that whatever happens
//! the boot behind it is by the default entry; the default entry is changed by `--keep` alone, at the very end, and by
//! the usual way. Inside each boot the rungs of the file run as they do in any trial. What is said of boots is in
//! `docs/boot-trials.md`, what is concluded from them in `ladder/boots.rs`, and what follows what in [`campaign`].

pub(crate) mod campaign;
mod machine;
mod measure;
mod state;
mod told;

use std::path::Path;

use planish_model::{Class, Exit, HostFacts, KnobId, Step as PlanStep, marked};
use planish_pipeline::{
    PipelineError, PlanOptions, Session, can_persist, can_resume, default_entry, once_preview, resume_units,
    stop_resume,
};

use self::campaign::{Campaign, Machine, Next};
use self::machine::{Real, planned, profile};
use self::state::{Saved, SavedUnit, VERSION};
use crate::control::Progress;
use crate::error::TrialError;
use crate::file::{BootsSpec, TrialFile};
use crate::host::{HostControl, PipelineHost, chain};
use crate::ladder::{WarmUpPlan, host_error};
use crate::outcome::{Refusal, TrialOutcome};
use crate::proof::Proofs;
use crate::run::{Ground, RunOptions, ask_to_persist, recipes};

/// How long a boot may take beside its units, in seconds: the opening of arms, and what waits for another planish.
const SPARE_SECONDS: f64 = 900.0;

/// What a trial of boots cannot do by the pipeline, and what a test plays.
pub trait Hands {
    /// Starts the machine anew. It has only begun when this returns.
    ///
    /// # Errors
    /// Nobody here can.
    fn reboot(&mut self, session: &Session) -> Result<(), PipelineError> {
        planish_pipeline::reboot(session)
    }

    /// The time in seconds since 1970, where it is not the machine's.
    fn now(&self) -> Option<u64> {
        None
    }

    /// One of its own calls is about to be made: a moment at which a test cuts the power.
    fn before(&mut self, _call: &'static str) {}
}

/// Those of this machine.
#[derive(Debug, Default)]
pub struct OwnHands;

impl Hands for OwnHands {}

/// What a trial of boots is begun with, besides what every trial is.
#[derive(Clone, Debug, Default)]
pub struct BootOptions {
    /// Whether it may start the machine anew.
    pub reboot: bool,
    /// Classes of boot parameters that may be set besides `safe`.
    pub classes: Vec<Class>,
    /// Boot parameters that may be set whatever their class.
    pub knobs: Vec<KnobId>,
    /// The folder of `--state`, as an absolute path.
    pub state: Option<String>,
}

/// What comes after a command on a trial of boots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum After {
    /// The machine is being started anew, and goes on by itself.
    Reboot,
    /// This program was asked to end; the next boot goes on.
    Interrupted,
    /// It has ended.
    Ended,
}

/// A trial of boots after a command.
#[derive(Clone, Debug, PartialEq)]
pub struct Going {
    /// What is known by now.
    pub outcome: TrialOutcome,
    /// What comes next.
    pub after: After,
}

/// Begins a trial of boots: looks whether the machine can do it, runs its workload once, and has the first boot come.
///
/// # Errors
/// It may not reboot, and what it would do; a machine that cannot boot an entry once, or cannot go on after it; another
/// trial of boots; a workload that does not run here.
pub fn begin(
    trial: &TrialFile,
    session: &Session,
    run: &RunOptions,
    boot: &BootOptions,
    hands: &mut dyn Hands,
    progress: &mut dyn Progress,
) -> Result<Going, TrialError> {
    let boots = boots_of(trial)?;
    if let Some(going) = state::load(session)? {
        let what = format!("a trial of boots is under way: {}", going.command);
        return Err(refused(what, "planish trial status; to end it: planish trial stop"));
    }
    refuse_unable(session)?;
    let allowed = PlanOptions {
        allow_classes: boot.classes.clone(),
        allow_knobs: boot.knobs.clone(),
        ..PlanOptions::default()
    };
    let arguments = previewed(trial, session, &allowed, run.keep)?;
    let unit = unit(trial, boots, run, boot)?;
    resume_units(&unit.wanted()).map_err(control)?;
    if !boot.reboot {
        let what = format!("nobody has allowed it to reboot: {}", told::before(trial, boots, &arguments));
        return Err(refused(what, "if that may be: once more with --allow reboot"));
    }
    if session.host().is_live() && !rustix::process::geteuid().is_root() {
        let what = "only root may write the boot loader's files, and start the machine anew".to_owned();
        return Err(refused(what, &format!("sudo {}", run.command)));
    }
    let proofs = Proofs::of_state(session.state_folder());
    proofs.check_writable()?;
    let mut host = PipelineHost::new(session, &run.command);
    host.begin()?;
    // After this point no other trial sets this host.
    if run.keep {
        ask_to_persist(&recipes(trial)[1..], trial, &host)?;
    }
    rehearse(trial, boots, &mut Ground { options: run, host: &mut host, proofs: &proofs, progress })?;
    let seed = run.checked_seed(trial.seed)?;
    let facts: HostFacts = host.facts();
    let mut real = Real {
        session,
        trial,
        options: run,
        saved: Saved {
            version: VERSION,
            command: run.repeated(seed),
            trial: trial.to_text(),
            classes: boot.classes.clone(),
            knobs: boot.knobs.clone(),
            keep: run.keep,
            unit,
            host: facts,
            cmdline: session.host().read("/proc/cmdline").unwrap_or_default(),
            default: default_entry(session),
            arguments,
            campaign: Campaign::new(seed, trial.boot.len(), boots.blocks, 0),
        },
        host,
        hands,
        progress,
        outcome: None,
    };
    let now = real.now();
    let deadline = run.budget.map(|budget| now.saturating_add(budget.as_secs()));
    let campaign = Campaign::new(seed, trial.boot.len(), boots.blocks, now).until(deadline);
    Ok(on(&mut real, campaign, Campaign::go_on))
}

/// Goes on with the trial of boots of this state folder; `None` where there is none. What the unit of systemd does
/// after each boot, and what anybody may type.
///
/// # Errors
/// A state that cannot be read, or that is not here in a boot on trial; a trial at work.
pub fn resume(
    session: &Session,
    run: &RunOptions,
    hands: &mut dyn Hands,
    progress: &mut dyn Progress,
) -> Result<Option<Going>, TrialError> {
    if state::load(session)?.is_none() && is_on_trial(session) {
        // Its disk may have failed in this boot: nothing is taken away, and what leaves such a boot has to see that.
        let what = "this is a boot on trial, and the state of its trial is not here".to_owned();
        return Err(refused(what, "systemctl reboot leaves it; planish check tells whose it is"));
    }
    with_saved(session, run, hands, progress, Campaign::go_on)
}

/// Ends the trial of boots of this state folder, also in a boot on trial, and takes back its unit, its entry and its
/// state; `None` where there is none. The machine is not started anew.
///
/// # Errors
/// As [`resume`]. A state that cannot be read, or whose trial is none any more, is taken away all the same, and the
/// error says so: nothing can be concluded from it.
pub fn stop(
    session: &Session,
    run: &RunOptions,
    hands: &mut dyn Hands,
    progress: &mut dyn Progress,
) -> Result<Option<Going>, TrialError> {
    stop_resume(session).map_err(control)?;
    if let Err(error) = status_of_state(session) {
        abandon(session)?;
        let what =
            format!("its unit, its boot entry and its state are gone, and nothing can be concluded: {error}");
        return Err(refused(what, "planish log"));
    }
    with_saved(session, run, hands, progress, |campaign, machine| {
        campaign.stop(machine, "somebody stopped it")
    })
}

/// The trial of boots of this state folder as far as it has come; without one, the last that has ended.
///
/// # Errors
/// A state or proofs that cannot be read.
pub fn status(session: &Session) -> Result<Option<TrialOutcome>, TrialError> {
    if let Some(outcome) = status_of_state(session)? {
        return Ok(Some(outcome));
    }
    let newest = Proofs::of_state(session.state_folder()).newest(|outcome| outcome.boots.is_some())?;
    Ok(newest.map(|mut outcome| {
        let persisted = machine::persisted(session, &outcome);
        outcome.notes.extend(persisted);
        outcome
    }))
}

/// The same of one that is under way.
fn status_of_state(session: &Session) -> Result<Option<TrialOutcome>, TrialError> {
    let Some(saved) = state::load(session)? else { return Ok(None) };
    let trial = state::trial_of(session, &saved)?;
    let mut outcome = told::outcome(&trial, &saved, &saved.campaign);
    if saved.campaign.end().is_none() {
        let ends = |why| format!("it ends at its next boot, or by planish trial stop: {why}");
        outcome.notes.extend(machine::spoilt(session, &saved).map(ends));
    }
    if machine::is_passed_over(session) {
        let told =
            "the machine was started anew without its boot loader (kexec?): the entry for once still waits";
        outcome.notes.push(told.to_owned());
    }
    Ok(Some(outcome))
}

/// Refuses a machine that could not go on after a boot, and a boot that is none of the baseline.
fn refuse_unable(session: &Session) -> Result<(), TrialError> {
    can_resume(session).map_err(control)?;
    if is_on_trial(session) {
        let what = "this is a boot on trial, and the baseline is a boot by the default entry".to_owned();
        return Err(refused(what, "planish check tells whose it is; start the machine anew, and then begin"));
    }
    Ok(())
}

/// Whether this boot is by an entry for once.
fn is_on_trial(session: &Session) -> bool {
    session.host().read("/proc/cmdline").is_ok_and(|cmdline| marked(&cmdline).next().is_some())
}

/// Takes away what nobody can go on with.
fn abandon(session: &Session) -> Result<(), TrialError> {
    let host = |detail| TrialError::Host { detail, restored: false };
    machine::take_back(session).map_err(host)?;
    machine::remove_unit(session).map_err(host)?;
    state::remove(session).map_err(|error| host(chain(&error)))
}

fn refused(what: String, cure: &str) -> TrialError {
    TrialError::Refused { what, cure: cure.to_owned() }
}

/// A refusal of the control plane, with its own cure.
fn control(error: PipelineError) -> TrialError {
    TrialError::Refused { what: chain(&error), cure: error.hints().join("; ") }
}

fn boots_of(trial: &TrialFile) -> Result<&BootsSpec, TrialError> {
    trial.boots.as_ref().ok_or_else(|| TrialError::Usage {
        what: "no arm of this trial is a boot".to_owned(),
        cure: "leave --allow out, or give it [boots] and a [[boot]]".to_owned(),
    })
}

/// What each boot would be given, once it is known that the loader can do it and that this user may; where the best is
/// to be kept, also for every boot.
fn previewed(
    trial: &TrialFile,
    session: &Session,
    allowed: &PlanOptions,
    keep: bool,
) -> Result<Vec<String>, TrialError> {
    let mut given = Vec::new();
    for boot in &trial.boot {
        let of_boot = |error: PipelineError| {
            let what = format!("boot `{}`: {}", boot.name.get_ref(), chain(&error));
            TrialError::Refused { what, cure: error.hints().join("; ") }
        };
        let plan = planned(session, profile(trial, boot), allowed).map_err(of_boot)?;
        once_preview(session, &plan).map_err(of_boot)?;
        if keep {
            let error = |error: PipelineError| TrialError::Refused {
                what: format!(
                    "--keep could not persist boot `{}` if it pays: {}",
                    boot.name.get_ref(),
                    chain(&error)
                ),
                cure: format!("{}; or leave --keep out", error.hints().join("; ")),
            };
            can_persist(session, &plan).map_err(error)?;
        }
        given.push(arguments(session, plan.boot.iter()));
    }
    Ok(given)
}

/// What steps for the boot loader give the kernel.
fn arguments<'s>(session: &Session, steps: impl Iterator<Item = &'s PlanStep>) -> String {
    let argument = |step: &PlanStep| session.catalogue().knob(&step.knob).ok()?.argument(&step.wanted);
    steps.filter_map(argument).collect::<Vec<_>>().join(" ")
}

/// How systemd goes on with it. A relative program, or a folder or a search path with blanks, would mean something else
/// in a unit, and is refused by who writes it.
fn unit(
    trial: &TrialFile,
    boots: &BootsSpec,
    run: &RunOptions,
    boot: &BootOptions,
) -> Result<SavedUnit, TrialError> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let folder = std::env::current_dir()
        .map_err(|source| TrialError::File { path: ".".into(), source })
        .map(|folder| text(&folder))?;
    let units = (boots.units * (trial.rung.len() + 1)) as f64;
    let settle =
        trial.workload.settle_seconds + trial.workload.settle.seconds + trial.workload.settle.psi_seconds;
    let service = trial.service.as_ref();
    let start = service.map_or(0.0, |it| it.ready_seconds + it.warmup_seconds + it.stop_seconds);
    let warm_up = match trial.warm_up() {
        WarmUpPlan::Fixed(time) => time.as_secs_f64(),
        WarmUpPlan::Auto | WarmUpPlan::Detect => 0.0,
    };
    let seconds = boots.settle_seconds
        + units * (trial.workload.timeout_seconds + settle + start + warm_up)
        + SPARE_SECONDS;
    Ok(SavedUnit {
        program: text(&run.program),
        state: boot.state.clone(),
        folder,
        path: std::env::var("PATH").unwrap_or_else(|_| "/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
        seconds_max: seconds.ceil() as u64,
    })
}

/// One unit of each arm here, before the machine is started anew for any: what does not run here will not run there.
fn rehearse(trial: &TrialFile, boots: &BootsSpec, ground: &mut Ground<'_>) -> Result<(), TrialError> {
    let short = BootsSpec { units: 1, settle_seconds: 0.0, ..boots.clone() };
    let failed = |detail| TrialError::Baseline { name: trial.baseline.name().to_owned(), detail };
    let inner = match measure::measure(trial, &short, 0, ground) {
        Ok(inner) => inner,
        Err(campaign::Unmeasured::Stopped) => return Err(TrialError::Stopped),
        Err(campaign::Unmeasured::Lost(why)) => return Err(failed(why)),
        Err(campaign::Unmeasured::Host(detail)) => return Err(TrialError::Host { detail, restored: true }),
    };
    let primary = trial.primary_name();
    let told = inner.first().and_then(|inner| inner.as_ref().ok()?.get(&primary).cloned());
    match told {
        Some(figure) if figure.value > 0.0 => Ok(()),
        Some(figure) => Err(TrialError::NotAboveZero { metric: primary, value: figure.value, instead: None }),
        None => Err(failed(format!("it reports no `{primary}`"))),
    }
}

/// What is done with a campaign.
type Step = fn(&mut Campaign, &mut dyn Machine) -> Next;

fn with_saved(
    session: &Session,
    run: &RunOptions,
    hands: &mut dyn Hands,
    progress: &mut dyn Progress,
    step: Step,
) -> Result<Option<Going>, TrialError> {
    let Some(saved) = state::load(session)? else {
        // A kill may have come between the two: the unit is of no use without a state.
        planish_pipeline::remove_resume(session).map_err(control)?;
        return Ok(None);
    };
    let trial = state::trial_of(session, &saved)?;
    session.wait_for_others();
    let mut host = PipelineHost::new(session, &run.command);
    host.take_back_left().map_err(host_error)?;
    host.begin()?;
    let campaign = saved.campaign.clone();
    let mut real = Real { session, trial: &trial, options: run, saved, host, hands, progress, outcome: None };
    Ok(Some(on(&mut real, campaign, step)))
}

/// Does a step, and tells what came of it.
fn on(
    real: &mut Real<'_>,
    mut campaign: Campaign,
    step: impl FnOnce(&mut Campaign, &mut dyn Machine) -> Next,
) -> Going {
    let next = step(&mut campaign, real);
    let outcome = real.outcome.take();
    let mut outcome = outcome.unwrap_or_else(|| told::outcome(real.trial, &real.saved, &campaign));
    let mut not_done = |what: &str, why: String, cure: &str| {
        let (what, cure) = (what.to_owned(), cure.to_owned());
        outcome.refused.push(Refusal { what, why, cure });
    };
    let after = match next {
        Next::Reboot => After::Reboot,
        Next::Interrupted => After::Interrupted,
        Next::Ended(None) => After::Ended,
        Next::Ended(Some(left)) => {
            not_done("to leave nothing behind", left, "planish log; planish undo --all");
            outcome.exit = Exit::FailedNotRestored.code();
            After::Ended
        }
        Next::Unconcluded(why) => {
            not_done("the outcome", why, "mend that, and then: planish trial resume");
            outcome.exit = Exit::Refused.code();
            After::Ended
        }
    };
    if after == After::Ended && real.marked().is_some() {
        let next = machine::next_boot(real.session);
        let note = format!(
            "this boot is still the one on trial, and {next}: systemctl reboot, before a package that installs a \
             kernel copies its command line"
        );
        outcome.notes.push(note);
    }
    Going { outcome, after }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a boot is given must be enough for all that is done in it: it is killed after that.
    #[test]
    fn the_time_of_a_boot_has_the_warm_up_of_every_unit_in_it() {
        let seconds = |warm_up: &str| {
            let text = format!(
                "name = \"t\"\nsummary = \"s\"\nguards = []\n[workload]\nadapter = \"slices\"\ncommand = [\"x\"]\n\
                 {warm_up}[boots]\nblocks = 8\nunits = 3\n[[boot]]\nname = \"b\"\nwant = {{ \"boot.skew_tick\" = 1 }}\n\
                 [[rung]]\nname = \"r\"\nenv = {{ A = \"1\" }}\n"
            );
            let trial = TrialFile::parse("t.toml", &text).expect("a good file");
            let run = RunOptions {
                quick: false,
                keep: false,
                duet: false,
                seed: None,
                budget: None,
                program: "/usr/bin/planish".into(),
                command: "planish trial run t.toml".to_owned(),
                stop: crate::control::Stop::default(),
            };
            let boots = boots_of(&trial).expect("of boots");
            unit(&trial, boots, &run, &BootOptions::default()).expect("a unit").seconds_max
        };
        // Three units of two arms.
        assert_eq!(seconds("warmup = 600\n") - seconds("warmup = 0\n"), 3600);
    }

    const TRIAL: &str = "name = \"t\"\nsummary = \"s\"\nguards = []\n[workload]\nadapter = \"slices\"\n\
        command = [\"x\"]\n[boots]\nblocks = 8\nunits = 3\n[[boot]]\nname = \"b\"\n\
        want = { \"boot.skew_tick\" = 1 }\n";

    /// What is told of a trial whose state was changed on the disk.
    #[expect(clippy::disallowed_methods, reason = "the test writes the state that it reads")]
    fn told_of(change: impl Fn(&mut serde_json::Value)) -> Result<Option<TrialOutcome>, TrialError> {
        let folder = tempfile::tempdir().expect("room for a folder");
        for part in ["root/proc", "root/sys"] {
            std::fs::create_dir_all(folder.path().join(part)).expect("room for a folder");
        }
        let options = planish_pipeline::SessionOptions {
            root: Some(folder.path().join("root")),
            state: Some(folder.path().join("state")),
            ..planish_pipeline::SessionOptions::default()
        };
        let session = Session::open(options).expect("a host");
        let boot = |arm| campaign::Boot { block: 0, arm, inner: Err("it did not come up".to_owned()) };
        let saved = Saved {
            version: VERSION,
            command: "planish trial run t.toml".to_owned(),
            trial: TRIAL.to_owned(),
            classes: Vec::new(),
            knobs: Vec::new(),
            keep: false,
            unit: SavedUnit {
                program: "/usr/bin/planish".to_owned(),
                state: None,
                folder: "/".to_owned(),
                path: "/usr/bin".to_owned(),
                seconds_max: 900,
            },
            host: HostFacts::default(),
            cmdline: String::new(),
            default: None,
            arguments: vec!["skew_tick=1".to_owned()],
            campaign: Campaign::played(1, 8, vec![boot(1), boot(0)], None),
        };
        let mut state = serde_json::to_value(saved).expect("plain data");
        change(&mut state["campaign"]);
        std::fs::create_dir_all(session.state_folder()).expect("room for a folder");
        let file = session.state_folder().join("trial-boots.json");
        std::fs::write(file, state.to_string()).expect("room for a file");
        status(&session)
    }

    /// A number in it is a size somewhere: one that no trial comes to would end the program, or all memory of a machine
    /// that has just come up.
    #[test]
    fn a_state_that_no_trial_came_to_is_refused() {
        assert!(told_of(|_| ()).is_ok_and(|outcome| outcome.is_some()));
        let set = |names: &'static [&'static str], value: u64| {
            move |campaign: &mut serde_json::Value| {
                let place = names.iter().fold(campaign, |at, name| match name.parse::<usize>() {
                    Ok(index) => &mut at[index],
                    Err(_) => &mut at[*name],
                });
                *place = value.into();
            }
        };
        for names in [
            &["arms"][..],
            &["blocks_max"],
            &["boots_max"],
            &["block"],
            &["asked"],
            &["due", "0"],
            &["boots", "0", "arm"],
            &["boots", "1", "block"],
        ] {
            let error = told_of(set(names, 1 << 40)).expect_err("no trial has so many");
            assert!(chain(&error).contains("no trial of boots"), "{names:?}: {error}");
        }
        assert!(told_of(set(&["arms"], 0)).is_err() && told_of(set(&["arms"], 2)).is_err());
        // More boots than were asked for, and one that is waited for of an arm that is none.
        let many = |campaign: &mut serde_json::Value| {
            let boot = campaign["boots"][0].clone();
            campaign["boots"] = vec![boot; 1000].into();
        };
        assert!(told_of(many).is_err());
        let waits = |campaign: &mut serde_json::Value| {
            campaign["at"] =
                serde_json::json!({"Expected": {"arm": 3, "name": null, "after": "", "begun": false}});
        };
        assert!(told_of(waits).is_err());
    }
}
