//! Whole campaigns on a machine that is played, with the power cut before and after each of its calls.

use super::*;

/// What is left of a machine when its power goes.
#[derive(Clone, Debug, Default)]
struct Disk {
    campaign: Option<String>,
    resumes: bool,
    /// The entry for once: the arm, its name, and whether the loader is still to take it.
    once: Option<(usize, String, bool)>,
    /// Outcomes that were told, each a text of all boots.
    told: Vec<String>,
}

/// A machine. It dies before one of its calls, or right after it, as one whose power is cut does.
struct Fake {
    disk: Disk,
    boot: usize,
    running: Option<(usize, String)>,
    calls: usize,
    dies_at: Option<usize>,
    /// Whether the last call before it dies is done.
    is_done: bool,
    /// Arms that do not come up.
    broken: Vec<usize>,
    /// Arms that the loader refuses.
    refused: Vec<usize>,
    /// The boot from which on the default entry is another one, and whether it is one on trial.
    spoilt_from: Option<(usize, bool)>,
    /// Starts that go without the loader.
    without_loader: usize,
    measured: Vec<usize>,
    /// Boots at all, also those by somebody who switches it on.
    reboots: usize,
    decided_after: usize,
    seconds: u64,
}

impl Fake {
    fn new() -> Self {
        Self {
            disk: Disk::default(),
            boot: 0,
            running: None,
            calls: 0,
            dies_at: None,
            is_done: false,
            broken: Vec::new(),
            refused: Vec::new(),
            spoilt_from: None,
            without_loader: 0,
            measured: Vec::new(),
            reboots: 0,
            decided_after: usize::MAX,
            seconds: 0,
        }
    }

    fn is_dead(&self) -> bool {
        self.dies_at.is_some_and(|at| self.calls > at)
    }

    /// Does a call on the disk, unless the power is gone.
    fn call(&mut self, does: impl FnOnce(&mut Disk)) -> Result<(), String> {
        let was_dead = self.is_dead();
        self.calls += 1;
        if !was_dead && (!self.is_dead() || self.is_done) {
            does(&mut self.disk);
        }
        if self.is_dead() { Err("the power is gone".to_owned()) } else { Ok(()) }
    }

    /// The machine comes up: by the entry for once where there is one, which is taken; an arm that is broken hangs, and
    /// somebody switches it off and on.
    fn come_up(&mut self) {
        self.boot += 1;
        self.dies_at = None;
        self.running = None;
        if self.without_loader > 0 && self.disk.once.is_some() {
            self.without_loader -= 1;
            return;
        }
        if let Some((arm, name, due)) = &mut self.disk.once
            && std::mem::take(due)
        {
            if self.broken.contains(arm) {
                self.boot += 1;
            } else {
                self.running = Some((*arm, name.clone()));
            }
        }
    }
}

impl Machine for Fake {
    fn boot_id(&self) -> String {
        self.boot.to_string()
    }
    fn marked(&self) -> Option<String> {
        self.running.as_ref().map(|(_, name)| name.clone())
    }
    fn is_passed_over(&self) -> bool {
        self.disk.once.as_ref().is_some_and(|(_, _, due)| *due)
    }
    fn now(&self) -> u64 {
        self.seconds + 10 * self.boot as u64
    }
    fn keep(&mut self, campaign: &Campaign) -> Result<(), String> {
        let text = serde_json::to_string(campaign).expect("plain data");
        self.call(|disk| disk.campaign = Some(text))
    }
    fn resume_at_boot(&mut self) -> Result<(), String> {
        self.call(|disk| disk.resumes = true)
    }
    fn boot_once(&mut self, arm: usize, name: &str) -> Result<(), String> {
        assert!(self.disk.once.is_none() || self.is_dead(), "one entry for once at a time");
        assert!(self.disk.resumes || self.is_dead(), "nobody would come back after it");
        if self.refused.contains(&arm) {
            return Err("the loader refuses".to_owned());
        }
        self.call(|disk| disk.once = Some((arm, name.to_owned(), true)))
    }
    fn take_back(&mut self) -> Result<(), String> {
        self.call(|disk| disk.once = None)
    }
    fn shortfall(&self, _arm: usize) -> Option<String> {
        None
    }
    fn spoilt(&self) -> Option<String> {
        self.spoilt_from.filter(|(boot, _)| self.boot >= *boot).map(|_| "another default".to_owned())
    }
    fn leads_back(&self) -> bool {
        !self.spoilt_from.is_some_and(|(boot, is_on_trial)| self.boot >= boot && is_on_trial)
    }
    fn measure(&mut self, boot: usize) -> Result<Vec<Inner>, Unmeasured> {
        let was_dead = self.is_dead();
        self.call(|_| ()).map_err(Unmeasured::Lost)?;
        assert!(!was_dead && !self.measured.contains(&boot), "a boot is measured once");
        self.measured.push(boot);
        let value = if self.running.is_some() { 1.0 } else { 2.0 };
        let figure = Figure { value, unit: "s".to_owned(), better: Better::Lower };
        Ok(vec![Ok([("t".to_owned(), figure)].into())])
    }
    fn is_decided(&self, campaign: &Campaign) -> bool {
        campaign.block + 1 >= self.decided_after
    }
    fn reboot(&mut self) -> Result<(), String> {
        self.reboots += 1;
        self.call(|_| ())
    }
    fn conclude(&mut self, campaign: &Campaign) -> Result<(), String> {
        let text = format!("{:?}", campaign.boots);
        self.call(|disk| disk.told.push(text))
    }
    fn clear(&mut self) -> Result<(), String> {
        self.call(|disk| disk.resumes = false)?;
        self.call(|disk| disk.campaign = None)
    }
}

/// Boots and goes on until it ends; the campaign as it was told.
fn run(machine: &mut Fake, fresh: Campaign) -> Campaign {
    let mut campaign = fresh.clone();
    for _ in 0..500 {
        let next = campaign.go_on(machine);
        if machine.is_dead() || next == Next::Reboot {
            machine.come_up();
            match &machine.disk.campaign {
                Some(text) => campaign = serde_json::from_str(text).expect("what was kept"),
                // It had not begun, and somebody types it once more; or it was over but for the end of its last call.
                None if machine.disk.told.is_empty() => campaign = fresh.clone(),
                None => return campaign,
            }
            continue;
        }
        match next {
            Next::Ended(left) => {
                assert_eq!(left, None);
                return campaign;
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("it does not end: {campaign:?}");
}

/// A machine on which nothing of a campaign is left, by its default entry.
fn assert_as_before(machine: &Fake, when: &str) {
    let Disk { campaign, resumes, once, told } = &machine.disk;
    assert!(campaign.is_none() && !resumes && once.is_none(), "{when}: {:?}", machine.disk);
    assert!(machine.running.is_none(), "{when}: it is in a boot on trial");
    assert!(!told.is_empty() && told.iter().all(|text| *text == told[0]), "{when}: one outcome");
}

fn lost(campaign: &Campaign) -> usize {
    campaign.boots.iter().filter(|boot| boot.inner.is_err()).count()
}

#[test]
fn every_block_has_every_arm_once_in_an_order_that_the_seed_draws() {
    let mut orders = Vec::new();
    for seed in 0..8 {
        let mut machine = Fake::new();
        let campaign = run(&mut machine, Campaign::new(seed, 1, 4, 0));
        assert_eq!(
            (campaign.end.as_ref().map(|(end, _)| end), campaign.boots.len()),
            (Some(&End::Whole), 12)
        );
        assert_eq!(machine.measured, (0..12).collect::<Vec<_>>());
        // Boots by the default entry need no entry for once, and at the end it is left for the default one.
        assert!((12..=13).contains(&machine.reboots), "{}", machine.reboots);
        for block in campaign.boots.chunks(3) {
            let mut of_block: Vec<usize> = block.iter().map(|boot| boot.arm).collect();
            orders.push(of_block.clone());
            of_block.sort_unstable();
            assert_eq!(of_block, [0, 1, 2]);
            let is_right = |boot: &Boot| {
                let wanted = if boot.arm == 1 { 1.0 } else { 2.0 };
                boot.inner
                    .as_ref()
                    .is_ok_and(|inner| inner[0].as_ref().is_ok_and(|all| all["t"].value == wanted))
            };
            assert!(block.iter().all(is_right), "{block:?}");
        }
        assert_as_before(&machine, "at the end");
    }
    orders.sort();
    orders.dedup();
    assert!(orders.len() >= 5, "of six orders: {orders:?}");
}

#[test]
fn an_arm_that_does_not_come_up_is_dropped_and_the_rest_goes_on() {
    for refused in [false, true] {
        let mut machine = Fake::new();
        if refused {
            machine.refused = vec![1]
        } else {
            machine.broken = vec![1]
        }
        let campaign = run(&mut machine, Campaign::new(1, 2, 4, 0));
        assert_eq!(campaign.end.as_ref().map(|(end, _)| end), Some(&End::Whole));
        assert_eq!((campaign.lost(1), campaign.lost(2)), (LOST_MAX, 0));
        assert_eq!(campaign.boots.iter().filter(|boot| boot.arm == 1).count(), LOST_MAX);
        assert_eq!(campaign.boots.iter().filter(|boot| boot.arm == 2).count(), 4);
        assert_as_before(&machine, "at the end");
    }
    let mut machine = Fake { broken: vec![1], ..Fake::new() };
    let campaign = run(&mut machine, Campaign::new(1, 1, 4, 0));
    assert_eq!(campaign.end.as_ref().map(|(end, _)| end), Some(&End::NothingLeft));
    assert_as_before(&machine, "nothing is left");
}

#[test]
fn a_start_without_the_boot_loader_is_told_from_one_that_did_not_come_up() {
    let mut machine = Fake { without_loader: 1, ..Fake::new() };
    let campaign = run(&mut machine, Campaign::new(1, 1, 4, 0));
    let told: Vec<&String> = campaign.boots.iter().filter_map(|boot| boot.inner.as_ref().err()).collect();
    assert_eq!(told, [PASSED_OVER]);
    assert_as_before(&machine, "passed over once");
    let mut machine = Fake { broken: vec![1], ..Fake::new() };
    let campaign = run(&mut machine, Campaign::new(1, 2, 4, 0));
    let told = campaign.boots.iter().filter_map(|boot| boot.inner.as_ref().err());
    assert!(told.clone().count() == LOST_MAX && told.clone().all(|why| why != PASSED_OVER));
}

#[test]
fn it_ends_when_all_is_decided_when_the_time_is_up_and_when_no_boot_is_left() {
    let mut machine = Fake { decided_after: 2, ..Fake::new() };
    assert_eq!(run(&mut machine, Campaign::new(1, 1, 9, 0)).boots.len(), 6);
    assert_as_before(&machine, "decided");
    let mut machine = Fake::new();
    let campaign = run(&mut machine, Campaign::new(1, 1, 9, 0).until(Some(45)));
    assert_eq!((campaign.boots.len(), machine.reboots <= 6), (5, true), "a boot takes ten seconds");
    assert!(matches!(campaign.end, Some((End::Spent(_), _))));
    assert_as_before(&machine, "late");
    let mut machine = Fake::new();
    let short = Campaign { boots_max: 4, ..Campaign::new(1, 1, 9, 0) };
    let campaign = run(&mut machine, short);
    assert_eq!((campaign.asked, campaign.boots.len()), (4, 4));
    assert_as_before(&machine, "no boot is left");
}

#[test]
fn a_power_cut_at_any_call_ends_in_a_machine_as_before() {
    let mut whole = Fake::new();
    run(&mut whole, Campaign::new(7, 1, 3, 0));
    assert!(whole.calls > 60, "{}", whole.calls);
    for (at, is_done) in (0..whole.calls).flat_map(|at| [(at, false), (at, true)]) {
        let mut machine = Fake { dies_at: Some(at), is_done, ..Fake::new() };
        let campaign = run(&mut machine, Campaign::new(7, 1, 3, 0));
        let when = format!("cut at call {at}, done {is_done}");
        assert_eq!(campaign.end.as_ref().map(|(end, _)| end), Some(&End::Whole), "{when}");
        assert!(lost(&campaign) <= 1, "{when}: {} boots are lost", lost(&campaign));
        assert_eq!(campaign.boots.len(), 9, "{when}");
        assert!(machine.reboots <= campaign.boots_max + 1, "{when}: {}", machine.reboots);
        assert_as_before(&machine, &when);
    }
}

#[test]
fn stopped_anywhere_also_in_a_boot_on_trial_it_takes_all_of_it_away() {
    for boots in 0..8 {
        for measured in [false, true] {
            let mut machine = Fake::new();
            let mut campaign = Campaign::new(3, 1, 3, 0);
            for _ in 0..=boots {
                assert_eq!(campaign.go_on(&mut machine), Next::Reboot);
                machine.come_up();
            }
            if measured {
                // In the middle of it, as somebody who logs in finds it.
                machine.dies_at = Some(machine.calls + 1);
                campaign.go_on(&mut machine);
                machine.dies_at = None;
                let text = machine.disk.campaign.clone().expect("kept before it is measured");
                campaign = serde_json::from_str(&text).expect("what was kept");
            }
            let is_on_trial = machine.running.is_some();
            assert_eq!(campaign.stop(&mut machine, "typed"), Next::Ended(None));
            assert_eq!(
                machine.running.is_some(),
                is_on_trial,
                "it is not started anew under somebody's hands"
            );
            machine.come_up();
            assert_as_before(&machine, &format!("stopped in boot {boots}"));
        }
    }
}

/// Asked again before the machine went down, it asks for the same arm once more, and for no other.
#[test]
fn typed_twice_it_boots_the_same_arm() {
    let mut machine = Fake::new();
    let mut campaign = Campaign::new(1, 1, 2, 0);
    assert_eq!(campaign.go_on(&mut machine), Next::Reboot);
    let arm = campaign.waits_for();
    assert_eq!(campaign.go_on(&mut machine), Next::Reboot);
    assert_eq!((campaign.waits_for(), campaign.asked), (arm, 2));
    let campaign = run(&mut machine, campaign);
    assert_eq!((campaign.boots.len(), lost(&campaign)), (6, 0));
    assert_as_before(&machine, "at the end");
}

/// The stages of the guest with a disk are written for these draws (`tests/vm/src/disk/left.rs`).
#[test]
fn the_seed_of_the_guest_draws_the_arm_last_and_then_first() {
    let mut campaign = Campaign::new(7, 1, 8, 0);
    assert_eq!(campaign.due, [1, 0, 2], "the next one is the last");
    campaign.block = 1;
    campaign.draw();
    assert_eq!(campaign.due, [0, 2, 1]);
}

/// A package that installs a kernel may make another entry the default one, and give it the arguments of the arm.
#[test]
fn no_boot_is_asked_for_once_the_default_entry_is_another_one() {
    for is_on_trial in [false, true] {
        for boot in 0..8 {
            let mut machine = Fake { spoilt_from: Some((boot, is_on_trial)), ..Fake::new() };
            let mut campaign = Campaign::new(3, 1, 3, 0);
            let mut next = campaign.go_on(&mut machine);
            while next == Next::Reboot && machine.boot < boot {
                machine.come_up();
                next = campaign.go_on(&mut machine);
            }
            let when = format!("in boot {boot}, the default on trial {is_on_trial}");
            // It leaves a boot on trial for a default entry that leads back, and no other.
            assert_eq!(next == Next::Reboot, machine.running.is_some() && !is_on_trial, "{when}");
            if next == Next::Reboot {
                machine.come_up();
                next = campaign.go_on(&mut machine);
            }
            assert_eq!(next, Next::Ended(None), "{when}");
            assert_eq!(
                campaign.end().map(|(end, _)| end.clone()),
                Some(End::Stopped("another default".into()))
            );
            assert!(campaign.asked() <= boot, "{when}: {} boots", campaign.asked());
            machine.running = None;
            assert_as_before(&machine, &when);
        }
    }
}
