//! The page in a real browser: Chromium without a window, at two widths and in both lights.
//!
//! The page has no script of its own. A copy of it gets one that measures what was laid out and writes what
//! it found into the document, which the browser then prints.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use planish_report::trial_html;
use serde_json::Value;

use crate::fixed;

/// The probe, put at the end of the copy.
const PROBE: &str = include_str!("probe.js");

/// Longest time that one page may take.
const LIMIT: Duration = Duration::from_secs(180);

/// Sheets that the fixed outcome of five rungs may take.
const SHEETS_MAX: usize = 11;

/// Names under which distributions install the browser.
const BROWSERS: [&str; 4] = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    BROWSERS
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|it| it.is_file())
}

/// What the browser says of a page: what the probe found, and the lines of the console.
pub struct Seen {
    pub found: Value,
    pub console: Vec<String>,
}

/// Lets the browser lay out `page`, with the probe in it, at a width and in a light.
pub fn look(browser: &Path, page: &str, width: u32, dark: bool) -> Seen {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let copy = page.replace("default-src 'none';", "default-src 'none'; script-src 'unsafe-inline';");
    assert_ne!(copy, page, "the page allows no script");
    let probed = copy.replace("</body>", &format!("<script>{PROBE}</script></body>"));
    let file = folder.path().join("page.html");
    std::fs::write(&file, probed).expect("the folder can be written");
    let url = format!("file://{}", file.display());
    let light = if dark { 0 } else { 1 };
    let (out, err) = (folder.path().join("out"), folder.path().join("err"));
    let create = |path: &Path| std::fs::File::create(path).expect("the folder can be written");
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"])
        .args(["--enable-logging=stderr", "--virtual-time-budget=3000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(format!("--blink-settings=preferredColorScheme={light}"))
        .arg(format!("--window-size={width},2000"))
        .arg(url)
        .stdin(Stdio::null())
        .stdout(create(&out))
        .stderr(create(&err))
        .spawn()
        .expect("the browser starts");
    let begun = Instant::now();
    while child.try_wait().expect("our own child").is_none() {
        if begun.elapsed() > LIMIT {
            child.kill().expect("our own child");
            child.wait().expect("our own child");
            panic!("the browser took more than {LIMIT:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let text = |path: &Path| std::fs::read_to_string(path).expect("the browser wrote text");
    let (dom, log) = (text(&out), text(&err));
    let found = dom.split_once("<pre id=\"found\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let found = found.unwrap_or_else(|| panic!("the probe did not end:\n{log}")).0;
    let found = found.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    Seen {
        found: serde_json::from_str(&found).expect("the probe writes JSON"),
        console: log.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect(),
    }
}

/// The browser, or a word aloud that there is none.
pub fn browser_or_skip(test: &str) -> Option<PathBuf> {
    let found = browser();
    if found.is_none() {
        planish_skip::skip(test, format!("none of {} is installed", BROWSERS.join(", ")));
    }
    found
}

pub fn list<'a>(found: &'a Value, name: &str) -> Vec<&'a str> {
    found[name].as_array().expect("a list").iter().filter_map(Value::as_str).collect()
}

#[test]
fn a_browser_draws_what_the_outcome_says() {
    let Some(browser) = browser_or_skip("a_browser_draws_what_the_outcome_says") else { return };
    for (name, outcome) in
        [("series", fixed::series()), ("poor", fixed::poor()), ("stopped", fixed::stopped())]
    {
        let page = trial_html(&outcome);
        for (width, dark) in [(400, false), (400, true), (1400, false), (1400, true)] {
            let Seen { found, console } = look(&browser, &page, width, dark);
            let case = format!("{name}, {width} px, dark {dark}");
            assert!(console.is_empty(), "{case}: {console:?}");
            if found["width"] != width {
                let why = format!("{} makes no window of {width} pixels", browser.display());
                planish_skip::skip("a_browser_draws_what_the_outcome_says", why);
                continue;
            }
            assert_eq!(found["dark"], dark, "{case}: {}", browser.display());
            assert!(list(&found, "overflowing").is_empty(), "{case}: {:#}", found["overflowing"]);
            assert!(list(&found, "wrong").is_empty(), "{case}: {:#}", found["wrong"]);
            let checked = |what: &str| found["checked"][what].as_u64().expect("a count");
            assert!(checked("figures") >= 15 && checked("quotes") >= 8, "{case}: {}", found["checked"]);
            let pairs = outcome.rungs.iter().map(|rung| rung.pair_logs.len() as u64).sum::<u64>();
            assert!(checked("shapes") >= pairs, "{case}: {}", found["checked"]);
        }
    }
}

#[test]
fn the_probe_finds_what_is_wrong() {
    let Some(browser) = browser_or_skip("the_probe_finds_what_is_wrong") else { return };
    let page = trial_html(&fixed::series());
    let seen = |page: &str| look(&browser, page, 400, false);

    let loud = seen(&page.replace("</body>", "<script>console.error('broken')</script></body>"));
    assert!(loud.console.iter().any(|line| line.contains("broken")), "{:?}", loud.console);

    let wide = seen(&page.replace("</main>", "<div style=\"width:600px\">wide</div></main>"));
    assert!(!list(&wide.found, "overflowing").is_empty(), "{:#}", wide.found);

    let effect = fixed::series().rungs[1].effect.expect("measured");
    let shape = format!("data-at=\"/rungs/1/effect\" data-value=\"{effect}\"");
    let figure = format!("value=\"{effect}\" data-at=\"/rungs/1/effect\"");
    for (right, wrong) in [
        (shape.as_str(), "data-at=\"/rungs/1/effect\" data-value=\"0.01\""),
        (figure.as_str(), "value=\"0.01\" data-at=\"/rungs/1/effect\""),
        (shape.as_str(), "data-at=\"/rungs/0/effect\" data-value=\"0.01\""),
        // What is read, and not what is behind it: a digit, a unit, a day.
        ("/rungs/1/effect\">+7.2\u{a0}%", "/rungs/1/effect\">+7.3\u{a0}%"),
        ("82.41\u{a0}ns", "82.41\u{a0}µs"),
        ("9\u{a0}min\u{a0}23\u{a0}s", "9\u{a0}min\u{a0}32\u{a0}s"),
        ("20\u{a0}09:40:00", "21\u{a0}09:40:00"),
        ("href=\"#mark-keep\" class=\"mark-keep\" x=\"", "href=\"#mark-keep\" class=\"mark-keep\" x=\"1"),
    ] {
        let changed = page.replace(right, wrong);
        assert_ne!(changed, page, "{right} is on the page");
        assert!(!list(&seen(&changed).found, "wrong").is_empty(), "{wrong} was not found");
    }
}

/// On paper the reasons must not stand one word a line, nor leave half a page empty before each rung.
#[test]
fn the_page_prints_on_few_sheets() {
    let Some(browser) = browser_or_skip("the_page_prints_on_few_sheets") else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (file, sheets) = (folder.path().join("page.html"), folder.path().join("page.pdf"));
    std::fs::write(&file, trial_html(&fixed::series())).expect("the folder can be written");
    let printed = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(format!("--print-to-pdf={}", sheets.display()))
        .arg(format!("file://{}", file.display()))
        .stdin(Stdio::null())
        .output()
        .expect("the browser starts");
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let pdf = std::fs::read(&sheets).expect("the browser wrote it");
    let count = pdf.split(|byte| *byte == b'\n').filter(|line| line.ends_with(b"/Type /Page")).count();
    assert!((3..=SHEETS_MAX).contains(&count), "{count} sheets");
}

/// Holds what a browser draws of a page, narrow and wide, light and dark: all of its figures are checked and right, and
/// nothing runs over.
pub fn draws_at_any_width(test: &str, page: &str) {
    let Some(browser) = browser_or_skip(test) else { return };
    for (width, dark) in [(400, false), (400, true), (1400, false), (1400, true)] {
        let Seen { found, console } = look(&browser, page, width, dark);
        let case = format!("{width} px, dark {dark}");
        assert!(console.is_empty(), "{case}: {console:?}");
        if found["width"] != width {
            planish_skip::skip(test, format!("{} makes no window of {width} pixels", browser.display()));
            continue;
        }
        assert_eq!(found["dark"], dark, "{case}");
        assert!(list(&found, "overflowing").is_empty(), "{case}: {:#}", found["overflowing"]);
        assert!(list(&found, "wrong").is_empty(), "{case}: {:#}", found["wrong"]);
        assert!(found["checked"]["figures"].as_u64().expect("a count") > 20, "{case}");
    }
}
