//! The live host, with harmless settings only: a statistics interval and four huge pages.
//!
//! Runs only where it is asked for, with PLANISH_TEST_LIVE=1 as root: a test run must not touch a machine that
//! somebody needs.

use std::time::Instant;

use planish_model::{Exit, KnobId, Nodes, OutcomeKind, Want};
use planish_pipeline::{ApplyOptions, Session, SessionOptions, Target, apply, check, log, undo};
use planish_skip::{Turn, skip};
use tempfile::TempDir;

use crate::tree::{STAT_INTERVAL, plan_of, profile};

/// A session on the live host, alone with it among all tests of this machine: they write the same host.
fn live(test: &str) -> Option<(Session, TempDir, Turn)> {
    if std::env::var_os("PLANISH_TEST_LIVE").is_none() {
        skip(test, "PLANISH_TEST_LIVE is not set: the live host is left alone");
        return None;
    }
    let turn = match Turn::wait() {
        Ok(turn) => turn,
        Err(reason) => {
            skip(test, reason);
            return None;
        }
    };
    let state = TempDir::new().expect("a temporary folder");
    let options = SessionOptions {
        state: Some(state.path().to_owned()),
        command: "live test".to_owned(),
        ..SessionOptions::default()
    };
    let session = Session::open(options).expect("a host");
    if !session.host().access(STAT_INTERVAL).is_writable() {
        skip(test, "this user may not write the live host");
        return None;
    }
    Some((session, state, turn))
}

#[test]
fn a_value_and_a_pool_come_and_go_on_the_live_host() {
    let test = "a_value_and_a_pool_come_and_go_on_the_live_host";
    let Some((session, _state, _alone)) = live(test) else { return };
    let read = |place: &str| session.host().read(place).expect("readable").trim().to_owned();
    let interval: i64 = read(STAT_INTERVAL).parse().expect("a number");
    let pools = || {
        let observation = session.observe();
        let pools = observation.pools.into_iter().filter(|pool| pool.page_bytes == 2 << 20);
        pools.map(|pool| (pool.place, pool.pages)).collect::<Vec<_>>()
    };
    let before = pools();
    let Some(node) = session.observe().host.nodes.first().copied() else {
        return skip(test, "this kernel tells no nodes");
    };
    let source = profile(
        "live-test",
        &[
            ("vm.stat_interval", Want::Int(interval + 1)),
            ("hugepages.2m", Want::Need { need_bytes: 8 << 20, nodes: Nodes::Each(vec![node]) }),
        ],
    );
    let plan = plan_of(&session, &source);
    let started = Instant::now();
    let applied = apply(&session, &plan, &ApplyOptions::default()).expect("the host takes it");
    println!("apply of {} steps on the live host: {:?}", plan.steps.len(), started.elapsed());
    let granted = |outcome: &&planish_model::Outcome| outcome.knob == KnobId::new("hugepages.2m");
    let pages = applied.outcomes.iter().find(granted).and_then(|outcome| outcome.granted_pages);
    assert_eq!(read(STAT_INTERVAL), (interval + 1).to_string());
    let sum = |pools: &[(String, u64)]| pools.iter().map(|(_, pages)| pages).sum::<u64>();
    assert_eq!(sum(&pools()), sum(&before) + pages.unwrap_or(0));
    assert_eq!(check(&session, None).expect("readable").exit, Exit::Done);
    let undone = undo(&session, Target::Newest, false).expect("undone");
    assert_eq!(undone.exit, Exit::Done, "{:#?}", undone.entries);
    assert_eq!((read(STAT_INTERVAL), pools()), (interval.to_string(), before));
    assert!(log(&session).expect("readable").iter().all(|entry| !entry.is_open()));
}

/// `/proc/sys/vm/stat_interval` written outside, then undone: the kernel's own text is compared, not ours.
#[test]
fn an_outside_edit_of_the_live_host_is_kept() {
    let test = "an_outside_edit_of_the_live_host_is_kept";
    let Some((session, _state, _alone)) = live(test) else { return };
    let interval: i64 =
        session.host().read(STAT_INTERVAL).expect("readable").trim().parse().expect("a number");
    let source = profile("live-test-edit", &[("vm.stat_interval", Want::Int(interval + 1))]);
    apply(&session, &plan_of(&session, &source), &ApplyOptions::default()).expect("the host takes it");
    let write = |value: i64| {
        planish_act::Sink::write(&planish_act::LiveSink, STAT_INTERVAL, &value.to_string())
            .expect("writable");
    };
    write(interval + 2);
    let undone = undo(&session, Target::Newest, false).expect("undone");
    let kinds: Vec<OutcomeKind> = undone.entries[0].1.iter().map(|outcome| outcome.outcome).collect();
    let now = session.host().read(STAT_INTERVAL).expect("readable").trim().to_owned();
    write(interval);
    assert_eq!((undone.exit, kinds), (Exit::Findings, vec![OutcomeKind::Theirs]));
    assert_eq!(now, (interval + 2).to_string());
}
