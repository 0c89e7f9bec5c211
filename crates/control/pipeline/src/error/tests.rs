use super::*;

fn denied() -> io::Error {
    io::Error::from(io::ErrorKind::PermissionDenied)
}

/// One of each kind of what keeps a plan from being made.
fn undecided() -> Vec<PipelineError> {
    let (text, knob) = (|| "x".to_owned(), |id| KnobId::new(id));
    let all = [
        DecideError::Catalogue(CatalogueError::Cycle { file: None, name: text() }),
        DecideError::Placement(planish_decide::PlacementError::NoService),
        DecideError::Part(planish_decide::PartError::NoPart { only: text(), here: vec![text()] }),
        DecideError::Word { knob: knob("cpu.epp"), word: text(), near: text() },
        DecideError::NoWord { knob: knob("cpu.epp"), word: text(), words: vec![text()] },
        DecideError::Pattern {
            knob: knob("block.scheduler"),
            only: text(),
            near: text(),
            places: vec![text()],
        },
        DecideError::NoPattern { knob: knob("block.scheduler"), only: text(), why: "braces" },
        DecideError::NoNode { knob: knob("hugepages.2m"), node: 9, nodes: vec![0] },
        DecideError::NoCpu {
            knob: knob("boot.isolcpus"),
            cpus: [9].into_iter().collect(),
            here: [0, 1].into_iter().collect(),
        },
        DecideError::NoIrq {
            knob: knob("irq.affinity"),
            irqs: [9].into_iter().collect(),
            here: [0, 1].into_iter().collect(),
        },
        DecideError::OnePlace { place: text(), knobs: [knob("a.b"), knob("c.d")] },
    ];
    all.into_iter().map(PipelineError::from).collect()
}

/// Of a disk that has no room.
fn full() -> JournalError {
    let path = PathBuf::from("/state/var/journal.jsonl");
    JournalError::Storage { what: "sync", path, source: io::Error::other("full") }
}

/// One of each other kind.
/// Of profiles and rows.
fn of_catalogue() -> Vec<PipelineError> {
    let service = || "x".to_owned();
    vec![
        CatalogueError::Twice { file: "a.toml:1:1".to_owned(), id: service() }.into(),
        CatalogueError::Rule { file: "a.toml:1:1".to_owned(), id: service(), rule: "r" }.into(),
        CatalogueError::Taken {
            file: "a.toml:1:1".to_owned(),
            id: service(),
            path: service(),
            owner: KnobId::new("a"),
        }
        .into(),
        CatalogueError::Pinned {
            file: "a.toml:1:1".to_owned(),
            pinned: Box::new(planish_model::PinnedOtherwise {
                knob: KnobId::new("a"),
                wanted: service(),
                pin: planish_model::Pin { by: KnobId::new("b"), at: service(), to: service() },
            }),
        }
        .into(),
        CatalogueError::UnknownKnob { file: service(), id: KnobId::new("a").to_string(), nearest: None }
            .into(),
    ]
}

fn all() -> Vec<PipelineError> {
    let path = || PathBuf::from("/state/var/journal.jsonl");
    let no_plan = || serde_json::from_str::<u8>("x").expect_err("no number");
    let unknown = || CatalogueError::UnknownProfile {
        file: None,
        name: "x".to_owned(),
        nearest: None,
        known: vec!["series".to_owned()],
        other: None,
    };
    let (service, place) = (|| "x".to_owned(), || "/proc/sys/vm/swappiness".to_owned());
    let foreign = |of: &[EntryId]| PipelineError::ForeignFile {
        path: place(),
        holders: of.to_vec(),
        link: (of.len() == 1).then(service),
        cure: service(),
        others: Box::default(),
    };
    let half_way = |restored| PipelineError::JournalHalfWay { entry: EntryId(1), restored, source: full() };
    let not_confirmed = |confirmed, restored| {
        let source = Box::new(foreign(&[]));
        PipelineError::NotConfirmed { entry: EntryId(2), confirmed, restored, source }
    };
    let gone = ResidencyError::NoProcess { process: service() };
    let (entry, seconds_left) = (EntryId(3), 57);
    let waiting = Unconfirmed { entry, seconds_left, is_whole: true, is_abandoned: false };
    let of_pipeline = vec![
        unknown().into(),
        PipelineError::Unreadable { path: path(), source: denied() },
        PipelineError::NotAPlan { path: path(), source: no_plan() },
        PipelineError::Edited { hash: service() },
        PipelineError::Forged { place: place(), why: service() },
        PipelineError::Elsewhere { what: "host" },
        PipelineError::Moved { moved: vec![place()] },
        PipelineError::NoMemory { knobs: vec![KnobId::new("hugepages.2m")], why: service() },
        PipelineError::BeyondNextBoot { knobs: vec![KnobId::new("hugepages.1g")], why: service() },
        PipelineError::Impossible { knobs: vec![KnobId::new("cpu.online")], why: service() },
        PipelineError::NotWritable { place: place(), why: service() },
        PipelineError::ReadOnlyFolder { file: "/etc/x".to_owned(), why: service() },
        PipelineError::OtherHost { path: path(), entries: vec![EntryId(1)] },
        foreign(&[]),
        foreign(&[EntryId(1)]),
        foreign(&[EntryId(1), EntryId(3)]),
        PipelineError::BootLoader { arguments: service(), reason: service(), cure: service() },
        PipelineError::BootFile {
            path: "/etc/x".to_owned(),
            source: planish_boot::Odd::CutOff { what: "a quote has no end" },
        },
        PipelineError::NotAFolder { path: path() },
        PipelineError::Linked { path: path() },
        PipelineError::Installed { entry: EntryId(3), path: "/etc/x".to_owned() },
        PipelineError::Unconfirmed { what: place(), unconfirmed: waiting },
        PipelineError::NotATime { text: service(), reason: service() },
        PipelineError::NotForAUnit { what: "program", text: service() },
        LockError::Held { path: path(), pid: None }.into(),
        LockError::Open { path: path(), source: denied() }.into(),
        full().into(),
        JournalError::NoEntry { id: EntryId(7) }.into(),
        half_way(true),
        half_way(false),
        not_confirmed(vec![EntryId(1)], true),
        not_confirmed(Vec::new(), false),
        PipelineError::Watch(denied()),
        PipelineError::RootsJournal { folder: path() },
        PipelineError::NoService { service: service(), nearest: None },
        PipelineError::ServiceMaps { service: service(), source: gone },
        PipelineError::Postgres { program: path(), setting: "huge_page_size", message: service() },
    ];
    of_pipeline.into_iter().chain(of_catalogue()).collect()
}

#[test]
fn every_error_has_a_cure() {
    let by_name = PipelineError::FileByName { name: "x.toml".to_owned() };
    let no_data = PipelineError::NoDataFolder { what: "folder", data: "/nope".into() };
    let no_profile = PipelineError::NotAProfile { path: "x.json".into() };
    let edited = PipelineError::NotAsShown { path: "/etc/x".to_owned(), entry: EntryId(2) };
    let gone = PipelineError::GoneSince { path: "/etc/x".to_owned(), entry: EntryId(2) };
    let moved = PipelineError::Unshown { paths: vec!["/etc/x".to_owned()] };
    let trial = PipelineError::TrialAtWork { pid: Some(7) };
    let once = PipelineError::Once { reason: "x".to_owned(), cure: "y".to_owned() };
    let (reason, cure) = ("x".to_owned(), "y".to_owned());
    let instead = PipelineError::InsteadOf { entry: EntryId(1), reason, cure };
    let relocate = PipelineError::Relocate { why: "x".to_owned(), cure: "y".to_owned() };
    let process = PipelineError::Process(RelocateError::NoNuma { pid: 7 });
    let record = PipelineError::Record(RecordFault::Name { name: "x".to_owned() });
    let program = PipelineError::Program { why: "x".to_owned(), cure: "y".to_owned() };
    let guarded = PipelineError::Guarded(ProgramRefusal::Init { path: "/sbin/init".to_owned() });
    let of_move = [relocate, process, record, program, guarded];
    let more =
        [once, instead, by_name, no_profile, no_data, edited, gone, moved, trial].into_iter().chain(of_move);
    for error in all().into_iter().chain(undecided()).chain(more) {
        let hints = error.hints();
        assert!(!hints.is_empty() && hints.iter().all(|hint| !hint.is_empty()), "{error:?}");
    }
}

#[test]
fn the_ending_of_a_file_says_what_was_meant() {
    let missing = |path: &str| {
        let source = io::Error::from(io::ErrorKind::NotFound);
        PipelineError::Unreadable { path: path.into(), source }.hints().concat()
    };
    let (profile, plan, neither) = (missing("./none.toml"), missing("./none.json"), missing("./folder"));
    assert!(profile.contains("docs/profiles.md") && !profile.contains("plan file"), "{profile}");
    assert!(plan.contains("plan file") && !plan.contains("profiles.md"), "{plan}");
    assert!(neither.starts_with("a file is taken for a profile where its name ends in .toml"), "{neither}");
    let source = serde_json::from_str::<u8>("name = 1").expect_err("no plan");
    let without = PipelineError::NotAPlan { path: "./noext".into(), source }.hints().concat();
    assert_eq!(without, neither);
}

#[test]
fn who_lacks_a_right_is_sent_to_root_and_who_lacks_room_is_not() {
    let open = PipelineError::from(LockError::Open { path: "/x".into(), source: denied() });
    let folder = JournalError::Storage { what: "create", path: "/x/journal.jsonl".into(), source: denied() };
    let full = JournalError::Storage { what: "sync", path: "/x".into(), source: io::Error::other("full") };
    assert!(open.is_for_root() && PipelineError::from(folder).is_for_root());
    assert!(!PipelineError::from(full).is_for_root());
}
