use super::*;

const HEAD: &str = "name = \"t\"\nsummary = \"s\"\n";
const COMMAND: &str = "[workload]\nadapter = \"command\"\ncommand = [\"true\"]\n";

fn error(text: &str) -> String {
    TrialFile::parse("t.toml", text).expect_err("it is wrong").to_string()
}

#[test]
fn a_small_file_is_enough() {
    let trial =
        TrialFile::parse("t.toml", &format!("{HEAD}{COMMAND}[[rung]]\nname = \"a\"\n")).expect("good");
    assert_eq!(trial.primary_name(), "cpu_s");
    assert_eq!(trial.guards().len(), 3);
    assert_eq!(trial.baseline.name(), "baseline");
}

#[test]
fn typing_errors_name_the_place_and_the_nearest_name() {
    let wrong = error(&format!("name = \"t\"\nsumary = \"s\"\n{COMMAND}"));
    assert!(wrong.starts_with("t.toml:2:1: ") && wrong.ends_with("did you mean `summary`?"), "{wrong}");
    let wrong = error(&format!("{HEAD}[workload]\nadapter = \"comand\"\n"));
    assert!(wrong.starts_with("t.toml:4:11: ") && wrong.ends_with("did you mean `command`?"), "{wrong}");
    let wrong = error(&format!("{HEAD}primary = \"cpus\"\n{COMMAND}"));
    let known = "cpu_s, wall_s, user_s, system_s, rss_bytes, faults";
    let no = |name: &str| format!("t.toml:3:11: this workload has no metric `{name}` among {known}");
    assert_eq!(wrong, format!("{}; did you mean `cpu_s`?", no("cpus")));
    let wrong = error(&format!("{HEAD}primary = \"cpu\"\n{COMMAND}"));
    assert_eq!(wrong, format!("{}; did you mean `cpu_s`?", no("cpu")), "a name that is cut short");
    let wrong = error(&format!("{HEAD}primary = \"speed\"\n{COMMAND}"));
    assert_eq!(wrong, no("speed"), "no random one");
    let wrong = error(&format!("{HEAD}{COMMAND}[[rung]]\nname = \"a\"\n[[rung]]\nname = \"a\"\n"));
    assert_eq!(wrong, "t.toml:9:8: the name `a` is taken");
    for taken in ["placebo", "stack"] {
        let wrong =
            error(&format!("{HEAD}{COMMAND}[baseline]\nname = \"{taken}\"\n[[rung]]\nname = \"a\"\n"));
        assert_eq!(wrong, format!("t.toml:7:8: the name `{taken}` is taken"));
    }
    let rung = |rest: &str| error(&format!("{HEAD}{COMMAND}[[rung]]\nname = \"a\"\n{rest}\n"));
    let wrong = rung("profile = \"postgers\"");
    assert!(wrong.starts_with("t.toml:8:11: no profile `postgers`"), "{wrong}");
    assert!(wrong.contains("did you mean `postgres`?"), "{wrong}");
    let wrong = rung("backing = \"thp\"");
    assert!(wrong.starts_with("t.toml:8:11: `backing` is what a program of the adapter"), "{wrong}");
    let slices = "[workload]\nadapter = \"slices\"\ncommand = [\"a\"]\n";
    let wrong = error(&format!("{HEAD}{slices}[[rung]]\nname = \"a\"\nbacking = \"hugetlb-2mm\"\n"));
    assert!(wrong.starts_with("t.toml:8:11: `hugetlb-2mm` is no backing"), "{wrong}");
    let wrong = rung("cpus = \"0-\"");
    assert!(wrong.starts_with("t.toml:8:8: `0-` is no list of CPUs"), "{wrong}");
}

#[test]
fn the_adapter_jitter_knows_its_words_its_metrics_and_their_direction() {
    let command = |words: &str| format!("{HEAD}[workload]\nadapter = \"jitter\"\ncommand = [{words}]\n");
    let wrong = error(&command(r#""planish", "latency", "--json""#));
    assert!(wrong.contains("is without --jitter"), "{wrong}");
    let text = command(r#""planish", "latency", "--jitter", "--json""#);
    let trial = TrialFile::parse("t.toml", &text).expect("good");
    assert_eq!(trial.primary_name(), "gap_p99_99_ns");
    let spec = metric_spec("ticks_per_s", &trial.workload);
    assert_eq!((spec.unit.as_str(), spec.better), ("1/s", Better::Lower), "fewer ticks are better");
    let wrong = error(&text.replace("[workload]", "primary = \"gap_p99_ms\"\n[workload]"));
    assert!(wrong.contains("no metric `gap_p99_ms`"), "{wrong}");
}

#[test]
fn a_guard_on_a_metric_that_nobody_reports_is_refused() {
    let guarded = |adapter: &str, metric: &str| {
        let guards = format!(
            "guards = [{{ metric = \"error_rate\", margin = 0.0 }},\n  {{ metric = \"{metric}\", margin = 0.1 }}]\n"
        );
        let workload = format!("[workload]\nadapter = \"{adapter}\"\ncommand = [\"a\"]\n");
        TrialFile::parse("t.toml", &format!("{HEAD}{guards}{workload}[[rung]]\nname = \"a\"\n"))
    };
    let wrong = guarded("slices", "p99ns").expect_err("a typo").to_string();
    assert!(wrong.starts_with("t.toml:4:3: this workload has no metric `p99ns` among "), "{wrong}");
    assert!(wrong.ends_with("; did you mean `p99_ns`?"), "{wrong}");
    for metric in ["p99_9_ns", "p95_ns", "mean_ns", "iqr_ns"] {
        assert!(guarded("slices", metric).is_ok(), "{metric}");
    }
    assert!(guarded("slices", "p_ns").is_err() && guarded("slices", "pp_ns").is_err());
    assert!(guarded("pgbench", "rss_bytes").is_ok() && guarded("pgbench", "p99_ns").is_err());
}

#[test]
fn a_metric_that_is_zero_when_all_goes_well_cannot_decide() {
    let jitter = r#"command = ["planish", "latency", "--jitter", "--json"]"#;
    let http = "[workload.http]\nurl = \"http://x/\"\nrate = 9\nseconds = 1";
    for (adapter, rest, primary, fitting) in [
        ("jitter", jitter, "irqs_per_s", "gap_p99_99_ns"),
        ("jitter", jitter, "ticks_per_s", "gap_p99_99_ns"),
        ("jitter", jitter, "softirqs_per_s", "gap_p99_99_ns"),
        ("jitter", jitter, "gaps_per_s", "gap_p99_99_ns"),
        ("jitter", jitter, "lost_share", "gap_p99_99_ns"),
        ("jitter", jitter, "stolen_share", "gap_p99_99_ns"),
        ("http", http, "error_rate", "p99_ns"),
        ("pgbench", "command = [\"a\"]", "error_rate", "tps"),
        ("slices", "command = [\"a\"]", "error_rate", "cpu_ns_per_op"),
    ] {
        let text = |primary: &str| {
            format!("{HEAD}primary = \"{primary}\"\n[workload]\nadapter = \"{adapter}\"\n{rest}\n")
        };
        let wrong = error(&text(primary));
        assert!(wrong.starts_with(&format!("t.toml:3:11: `{primary}` may be 0, ")), "{wrong}");
        assert!(wrong.contains(&format!("decide by `{fitting}`, ")), "{wrong}");
        assert!(TrialFile::parse("t.toml", &text(fitting)).is_ok(), "{fitting}");
    }
    let number = "[workload]\nadapter = \"number\"\ncommand = [\"a\"]\n\
                  [[workload.metric]]\nname = \"error_rate\"\nbetter = \"lower\"\npointer = \"/e\"\n";
    let wrong = error(&format!("{HEAD}{number}"));
    assert!(wrong.starts_with("t.toml:6:") && wrong.contains("decide by `cpu_s`"), "by default: {wrong}");
    assert!(TrialFile::parse("t.toml", &format!("{HEAD}primary = \"wall_s\"\n{number}")).is_ok());
}

#[test]
fn a_number_of_the_output_has_a_name_of_its_own_and_a_reader() {
    let file = |adapter: &str, names: &[&str]| {
        let rows = names.iter().map(|name| {
            format!("[[workload.metric]]\nname = \"{name}\"\nbetter = \"lower\"\npointer = \"/n\"\n")
        });
        let rows: String = rows.collect();
        format!("{HEAD}[workload]\nadapter = \"{adapter}\"\ncommand = [\"a\"]\n{rows}")
    };
    assert!(TrialFile::parse("t.toml", &file("number", &["n", "tps"])).is_ok());
    let wrong = error(&file("pgbench", &["tps"]));
    assert!(wrong.starts_with("t.toml:6:"), "{wrong}");
    assert!(wrong.contains("is for adapter `number`; this one has tps, latency_ms"), "{wrong}");
    let wrong = error(&file("number", &["n", "wall_s"]));
    assert!(
        wrong.starts_with("t.toml:10:") && wrong.contains("`wall_s` is measured from outside"),
        "{wrong}"
    );
    let wrong = error(&file("number", &["n", "n"]));
    assert!(wrong.starts_with("t.toml:10:") && wrong.contains("the name `n` is taken"), "{wrong}");
    let served = |name: &str| format!("{}[service]\ncommand = [\"s\"]\n", file("number", &[name]));
    assert!(error(&served("service_cpu_s")).contains("is measured from outside"));
    assert!(TrialFile::parse("t.toml", &served("cpu_ns_per_op")).is_ok(), "nobody counts operations");
}

#[test]
fn names_of_the_user_s_own_catalogue_are_names_too() {
    let mut catalogue = Catalogue::embedded().expect("sound");
    catalogue.add_profile("mine.toml", "name = \"mine\"\nsummary = \"s\"\n").expect("sound");
    let text = format!("{HEAD}{COMMAND}[[rung]]\nname = \"a\"\nprofile = \"mine\"\n");
    assert!(TrialFile::parse_with("t.toml", &text, &catalogue).is_ok());
    assert!(TrialFile::parse("t.toml", &text).is_err());
}

#[test]
fn an_impossible_number_is_told_where_it_stands() {
    let of_service = "[service]\ncommand = [\"a\"]\n";
    for (before, inside, after, place) in [
        ("min_gain = 3\n", "", "", "3:12"),
        ("pairs = 99999\n", "", "", "3:9"),
        ("hope = 0.1\nselfcheck_pairs = 4\n", "", "", "4:19"),
        ("seed = 9007199254740992\n", "", "", "3:8"),
        ("", "timeout_seconds = -5\n", "", "6:19"),
        ("", "settle_seconds = nan\n", "", "6:18"),
        ("", "settle.psi_below = 200\n", "", "6:20"),
        ("", "slices_per_start = 0\n", "", "6:20"),
        ("", "", "[quick]\nbudget_seconds = 0\n", "7:18"),
        ("", "", "[baseline]\nmin_gain = 0.1\n", "7:12"),
        ("", "", "[[rung]]\nname = \"a\"\n[[rung]]\nname = \"b\"\nmin_gain = 7\n", "10:12"),
        ("", "", &format!("{of_service}ready_seconds = 1e300\n"), "8:17"),
        ("guards = [{ metric = \"cpu_s\", margin = -3 }]\n", "", "", "3:40"),
        ("guards = [{ metric = \"cpu_s\", margin = nan }]\n", "", "", "3:40"),
        ("guards = [{ metric = \"cpu_s\", margin = 1.0 }]\n", "", "", "3:40"),
    ] {
        let wrong = error(&format!("{HEAD}{before}{COMMAND}{inside}{after}"));
        assert!(wrong.starts_with(&format!("t.toml:{place}: ")), "{before}{inside}{after}: {wrong}");
    }
    let http = "[workload]\nadapter = \"http\"\n[workload.http]\nurl = \"http://127.0.0.1/\"\n";
    let wrong = error(&format!("{HEAD}{http}rate = -1\nseconds = 1\n"));
    assert!(wrong.starts_with("t.toml:7:8: `rate`"), "{wrong}");
}

#[test]
fn impossible_numbers_and_halves_are_refused() {
    assert!(error(&format!("{HEAD}min_gain = 3\n{COMMAND}")).contains("fraction"));
    assert!(error(&format!("{HEAD}selfcheck_pairs = 4\n{COMMAND}")).contains("8 pairs"));
    assert!(error(&format!("{HEAD}[workload]\nadapter = \"http\"\n")).contains("[workload.http]"));
    assert!(
        error(&format!("{HEAD}[workload]\nadapter = \"number\"\ncommand = [\"a\"]\n")).contains("metric")
    );
    assert!(error(&format!("{HEAD}[workload]\nadapter = \"pgbench\"\n")).contains("command"));
    assert!(error(&format!("{HEAD}{COMMAND}[[rung]]\nwhy = \"no name\"\n")).contains("`name`"));
}

#[test]
fn a_time_that_no_clock_has_is_refused_wherever_it_stands() {
    let times = |file: &str, workload: &str, service: &str, quick: &str| {
        let service = if service.is_empty() {
            String::new()
        } else {
            format!("[service]\ncommand = [\"a\"]\n{service}\n")
        };
        let text = format!("{HEAD}{file}\n{COMMAND}{workload}\n{service}[quick]\n{quick}\n");
        TrialFile::parse("t.toml", &text).map(drop).map_err(|error| error.to_string())
    };
    for value in ["1e300", "inf", "nan", "-1.0", "2592000.5"] {
        for (place, name) in [
            (0, "budget_seconds"),
            (1, "timeout_seconds"),
            (1, "settle_seconds"),
            (1, "settle.seconds"),
            (1, "settle.psi_seconds"),
            (1, "warmup"),
            (2, "ready_seconds"),
            (2, "warmup_seconds"),
            (2, "stop_seconds"),
            (3, "budget_seconds"),
        ] {
            let mut lines = [const { String::new() }; 4];
            lines[place] = format!("{name} = {value}");
            let [file, workload, service, quick] = &lines;
            let wrong = times(file, workload, service, quick).expect_err(name);
            assert!(wrong.contains("30 days"), "{wrong}");
        }
        let http = |line: &str| {
            let text = format!(
                "{HEAD}[workload]\nadapter = \"http\"\n[workload.http]\nurl = \"http://x/\"\n{line}\n"
            );
            TrialFile::parse("t.toml", &text)
        };
        assert!(http(&format!("rate = 9\nseconds = {value}")).is_err());
        assert!(http(&format!("rate = 9\nseconds = 1\nwarmup_seconds = {value}")).is_err());
        assert!(http(&format!("rate = 9\nseconds = 1\ntimeout_seconds = {value}")).is_err());
        assert!(http("rate = 1e-300\nseconds = 1").is_err(), "its second request would come never");
        assert!(http("rate = 9\nseconds = 1").is_ok());
        for long in ["seconds = 600", "seconds = 1\nwarmup_seconds = 601"] {
            let wrong =
                http(&format!("rate = 9\n{long}")).expect_err("the unit fails after 600 s").to_string();
            assert!(wrong.contains("raise `timeout_seconds`"), "{wrong}");
        }
    }
    assert_eq!(times("budget_seconds = 2592000", "", "stop_seconds = 0", ""), Ok(()));
    assert!(times("pairs = 9223372036854775807", "", "", "").expect_err("too many").contains("4096 at most"));
    assert_eq!(times("pairs = 4096\nselfcheck_pairs = 4096", "", "", ""), Ok(()));
    assert!(
        times("pairs = 4097", "", "", "").is_err() && times("selfcheck_pairs = 4097", "", "", "").is_err()
    );
    assert!(times("selfcheck_pairs = 9223372036854775807", "", "", "").is_err());
}

#[test]
fn a_start_without_slices_is_refused_in_both_forms() {
    let slices = |workload: &str, quick: &str| {
        let workload = format!("[workload]\nadapter = \"slices\"\ncommand = [\"a\"]\n{workload}\n");
        let quick = format!("[quick]\n{quick}\n");
        TrialFile::parse("t.toml", &format!("{HEAD}{workload}[[rung]]\nname = \"a\"\n{quick}"))
    };
    assert!(slices("slices_per_start = 1", "slices_per_start = 1").is_ok());
    for (workload, quick, place) in
        [("slices_per_start = 0", "", "6:20"), ("", "slices_per_start = 0", "10:20")]
    {
        let wrong = slices(workload, quick).expect_err(place).to_string();
        assert_eq!(wrong, format!("t.toml:{place}: a start has slices: `slices_per_start` is 0"));
    }
}

#[test]
fn connections_that_no_process_has_threads_for_are_refused() {
    let http = |connections: usize| {
        let load = format!(
            "[workload.http]\nurl = \"http://x/\"\nrate = 9\nseconds = 1\nconnections = {connections}\n"
        );
        TrialFile::parse("t.toml", &format!("{HEAD}[workload]\nadapter = \"http\"\n{load}"))
    };
    assert!(http(1024).is_ok());
    for connections in [1025, 20_000, i64::MAX as usize] {
        let wrong = http(connections).expect_err("too many").to_string();
        assert!(wrong.contains("`connections` is 1024 at most"), "{wrong}");
    }
}

#[test]
fn a_warm_up_is_seconds_or_a_word_and_only_where_it_can_be_run() {
    use crate::ladder::WarmUpPlan;
    let slices = |warmup: &str| {
        let workload = format!("[workload]\nadapter = \"slices\"\ncommand = [\"a\"]\n{warmup}\n");
        TrialFile::parse("t.toml", &format!("{HEAD}{workload}[[rung]]\nname = \"a\"\n"))
    };
    let plan = |warmup: &str| slices(warmup).expect("good").warm_up();
    assert_eq!(plan(""), WarmUpPlan::Auto);
    assert_eq!(plan("warmup = \"detect\""), WarmUpPlan::Detect);
    assert_eq!(plan("warmup = 2"), WarmUpPlan::Fixed(std::time::Duration::from_secs(2)));
    let wrong = slices("warmup = \"detct\"").expect_err("a typo").to_string();
    assert!(wrong.starts_with("t.toml:6:10: ") && wrong.contains("or \"detect\""), "{wrong}");
    assert!(slices("warmup = -1.0").is_err());
    let command = error(&format!("{HEAD}{COMMAND}warmup = 2\n"));
    assert!(command.starts_with("t.toml:6:10: this adapter runs a program"), "{command}");
    let http = "[workload]\nadapter = \"http\"\nwarmup = 1\n\
                [workload.http]\nurl = \"http://x/\"\nrate = 9\nseconds = 1\n";
    let wrong = error(&format!("{HEAD}{http}warmup_seconds = 1\n"));
    assert!(wrong.contains("give one"), "{wrong}");
    assert!(TrialFile::parse("t.toml", &format!("{HEAD}{http}")).is_ok());
}

#[test]
fn resident_arms_cannot_want_different_hosts() {
    let slices = "[workload]\nadapter = \"slices\"\ncommand = [\"a\"]\n";
    let rung = "[[rung]]\nname = \"a\"\nprofile = \"series\"\n";
    assert!(error(&format!("{HEAD}{slices}{rung}")).contains("share the host"));
    let pool = "[[rung]]\nname = \"a\"\nwant = { \"hugepages.2m\" = { need_bytes = 1 } }\n";
    assert!(TrialFile::parse("t.toml", &format!("{HEAD}{slices}{pool}")).is_ok());
    let wrong = error(&format!("{HEAD}mode = \"step\"\n{slices}{pool}"));
    assert!(wrong.starts_with("t.toml:3:8: mode `step` puts rungs together"), "{wrong}");
}

#[test]
fn latencies_of_a_kind_have_its_name_in_front() {
    for name in ["parallel_mean_ns", "parallel_sd_ns", "lookup_p99_9_ns", "a_max_ns"] {
        assert!(is_latency_of_a_kind(name), "{name}");
    }
    for name in ["mean_ns", "p99_9_ns", "parallel_ns", "_mean_ns", "p1_mean_ns", "parallel_mean", "sd_ns"] {
        assert!(!is_latency_of_a_kind(name), "{name}");
    }
}

#[test]
fn programs_of_a_text_are_said_once_and_in_words_that_go_together() {
    let text = "[text]\nlink = [\"true\"]\n";
    let rung = |words: &str| format!("[[rung]]\nname = \"a\"\n{words}\n");
    let good =
        TrialFile::parse("t.toml", &format!("{HEAD}{COMMAND}{text}{}", rung("text = [\"bolt\", \"huge\"]")));
    assert_eq!(good.expect("good").text_name(), "t");
    let wrong = |text: &str, words: &str| error(&format!("{HEAD}{COMMAND}{text}{}", rung(words)));
    assert!(wrong("", "text = [\"order\"]").contains("for trials with a table [text]"));
    assert!(wrong(text, "text = [\"order\", \"bolt\"]").contains("an arm has one layout"));
    assert!(wrong(text, "text = [\"ordr\"]").contains("did you mean `order`?"));
    assert!(wrong(text, "program = \"x\"").contains("no `program`, no `build`"));
    assert!(wrong(text, "env = { PLANISH_TEXT = \"x\" }").contains("PLANISH_TEXT is set by [text]"));
    assert!(wrong("[text]\nbuild = [\"true\"]\n", "").contains("[text] needs `link`"));
    let of = |name: &str, more: &str| wrong(&format!("[text]\nof = \"{name}\"\n{more}"), "");
    assert!(of("series", "").ends_with("no shipped trial `series` has a [text] of its own"));
    assert!(of("text-load", "").ends_with("no shipped trial `text-load` has a [text] of its own"));
    assert!(of("text", "link = [\"true\"]\n").contains("say none in [text]"));
    let slices = "[workload]\nadapter = \"slices\"\ncommand = [\"x\"]\n";
    assert!(error(&format!("{HEAD}{slices}{text}")).contains("started for each unit"));
    let http = "[workload]\nadapter = \"http\"\n[workload.http]\nurl = \"http://127.0.0.1:1/\"\nrate = 1\nseconds = 1\n\
                [service]\ncommand = [\"x\"]\n";
    assert!(error(&format!("{HEAD}{http}{text}")).contains("[text] needs `sample`"));
}

#[test]
fn what_prove_text_runs_has_its_programs() {
    for name in ["text", "text-load"] {
        let trial = TrialFile::shipped(name).expect("shipped");
        let spec = trial.text_spec().expect("it has a text");
        assert!(!spec.build.is_empty() && !spec.link.is_empty() && !spec.trace.is_empty(), "{name}");
        assert_eq!(trial.text_name(), "text", "they share what was built");
    }
}
