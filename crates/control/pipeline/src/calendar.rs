//! Calendar events of systemd, as `install check --every` takes them: strictly, since systemd does not load a timer
//! whose `OnCalendar=` it cannot read, and nobody hears of a comparison that never runs.
//!
//! The grammar is a part of that of `systemd.time(7)`: the words (`hourly`, `daily` and their like), and
//! `[WEEKDAYS] [*-MONTH-DAY] [HOUR:MINUTE[:SECOND]] [UTC]`, where numbers are lists, ranges and repetitions
//! (`0,30`, `0..10`, `0/15`). What is taken here every systemd takes. Left out on purpose: named years and days that no
//! month has, which would run once or never; other time zones, which the host need not know; fractions of seconds and
//! days from the end of a month.

/// The words that stand for a whole event.
const WORDS: [&str; 10] = [
    "minutely",
    "hourly",
    "daily",
    "weekly",
    "monthly",
    "quarterly",
    "semiannually",
    "semi-annually",
    "yearly",
    "annually",
];

/// Weekdays in the order of systemd's ranges; their first three letters stand for them.
const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Days of each month, in a leap year.
const DAYS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// What to do about an event that is not taken: shapes that are, and the way to all others.
pub(crate) const CURE: &str = "name one such as hourly, daily, *:0/15, Tue 03:00, Mon..Fri 02:30 or *-*-01 04:00; for \
     any other of systemd.time(7) install hourly, and then: systemctl edit planish-check.timer";

/// Whether systemd will start a timer by this event, again and again.
///
/// # Errors
/// What of it is not understood, as the end of a sentence.
pub(crate) fn check(text: &str) -> Result<(), String> {
    let mut words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return Err("it is empty".to_owned());
    }
    if words.len() > 1 && words.last().is_some_and(|zone| zone.eq_ignore_ascii_case("UTC")) {
        words.pop();
    }
    if let [word] = words.as_slice()
        && WORDS.iter().any(|known| known.eq_ignore_ascii_case(word))
    {
        return Ok(());
    }
    let mut rest = words.as_slice();
    if let Some(word) = take(&mut rest, |word| word.starts_with(|c: char| c.is_ascii_alphabetic())) {
        weekdays(word)?;
    }
    if let Some(word) = take(&mut rest, |word| !word.contains(':')) {
        date(word)?;
    }
    if let Some(word) = take(&mut rest, |word| word.contains(':')) {
        time(word)?;
    }
    match rest {
        [] => Ok(()),
        [word, ..] => Err(format!("`{word}` is one word too many")),
    }
}

fn take<'a>(rest: &mut &[&'a str], is_it: impl Fn(&str) -> bool) -> Option<&'a str> {
    let (first, others) = rest.split_first()?;
    is_it(first).then(|| {
        *rest = others;
        *first
    })
}

/// `Mon`, `Mon,Thu`, `Mon..Fri`.
fn weekdays(text: &str) -> Result<(), String> {
    let day = |name: &str| {
        let is_it = |day: &str| name.eq_ignore_ascii_case(day) || name.eq_ignore_ascii_case(&day[..3]);
        let found = WEEKDAYS.iter().position(|day| is_it(day));
        found.ok_or_else(|| format!("`{name}` is no weekday"))
    };
    for item in text.split(',') {
        match item.split_once("..") {
            None => _ = day(item)?,
            Some((first, last)) if day(first)? <= day(last)? => {}
            Some(_) => return Err(format!("`{item}` goes backwards: a week begins with Mon")),
        }
    }
    Ok(())
}

/// `*-*-01`, `01,07-01`.
fn date(text: &str) -> Result<(), String> {
    let parts: Vec<&str> = text.split('-').collect();
    let (month, day) = match parts.as_slice() {
        ["*", month, day] | [month, day] => (month, day),
        [_, _, _] => return Err(format!("`{text}` names a year, and would not come again")),
        _ => return Err(format!("`{text}` is no weekday, no date and no time")),
    };
    let (months, days) = (numbers(month, "month", 1, 12)?, numbers(day, "day", 1, 31)?);
    let is_there = |month: &u32| days.iter().any(|day| *day <= DAYS[*month as usize - 1]);
    if months.iter().any(is_there) { Ok(()) } else { Err(format!("`{text}` is a day that never comes")) }
}

/// `03:00`, `*:0/15`, `03:00:30`.
fn time(text: &str) -> Result<(), String> {
    let mut parts = text.split(':');
    for (name, high) in [("hour", 23), ("minute", 59), ("second", 59)] {
        match parts.next() {
            Some(part) => _ = numbers(part, name, 0, high)?,
            // Of hours and minutes a colon tells.
            None => break,
        }
    }
    parts.next().map_or(Ok(()), |_| Err(format!("`{text}` has more than hours, minutes and seconds")))
}

/// The numbers that a list means: `*`, `5`, `1,3`, `0..10`, `0/15`, `0..30/5`.
fn numbers(text: &str, name: &str, low: u32, high: u32) -> Result<Vec<u32>, String> {
    if text == "*" {
        return Ok((low..=high).collect());
    }
    let number = |text: &str| {
        let is_short = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u32>().ok().filter(|number| is_short && (low..=high).contains(number))
    };
    let item = |text: &str| {
        let (span, step) = text.split_once('/').map_or((text, None), |(span, step)| (span, Some(step)));
        let (first, last) = span.split_once("..").map_or((span, None), |(first, last)| (first, Some(last)));
        let first = number(first)?;
        let last = match (last, step) {
            (Some(last), _) => number(last)?,
            (None, Some(_)) => high,
            (None, None) => first,
        };
        let step = match step {
            // A repetition that does not come to a second time is refused by systemd.
            Some(step) => {
                step.parse().ok().filter(|step| *step > 0 && first.saturating_add(*step) <= last)?
            }
            None => 1,
        };
        (first <= last).then(|| (first..=last).step_by(step as usize))
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        let wrong = || format!("`{part}` is no {name} from {low} to {high}, as in 5, 1..5 or 0/15");
        all.extend(item(part).ok_or_else(wrong)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::check;

    /// What the help, the essay and the cure name, and the shapes of the grammar.
    const TAKEN: [&str; 26] = [
        "hourly",
        "DAILY",
        "weekly",
        "monthly",
        "yearly",
        "quarterly",
        "semi-annually",
        "hourly UTC",
        "*:0/15",
        "*:00,30",
        "0/2:00",
        "03:00",
        "3:0:30",
        "Tue 03:00",
        "tuesday",
        "Mon..Fri 02:30",
        "Sat,Mon..Wed 5:00 UTC",
        "*-*-01 04:00",
        "*-01,07-01",
        "12-24",
        "*-02-29",
        "*-*-1..7 3:00",
        "Mon  *-*-1/7 *:*:0/30",
        "*:*",
        "*:58/1",
        "1..5,10..20/3:00",
    ];

    const REFUSED: [&str; 47] = [
        "",
        " ",
        "every tuesday",
        "now;reboot",
        "tues",
        "Mon..",
        "Fri..Mon",
        "Sun..Sat",
        "Mon,",
        "Mon Tue",
        "Mon 3",
        "12",
        "*",
        "25:00",
        "24:00",
        "*:60",
        "*:0/0",
        "*:0/60",
        "*:7/90",
        "*:5/61",
        "*:59/1",
        "*:*/5",
        "*:1,2,",
        "*:+5",
        "*:015",
        "*:15..10",
        "10:0-5",
        "*:0,*",
        "03:00:60",
        "1:2:3:4",
        "3:00:00.5",
        "2:00 3:00",
        "3:00 Mon",
        "*-13-01",
        "*-0-1",
        "*-*-0",
        "*-*-32",
        "*-02-30",
        "*-*-*/2",
        "*-*~1",
        "2026-12-24",
        "2026-12-24T03:00",
        "@100",
        "03:00 Europe/Berlin",
        "UTC",
        "hourly\n",
        "hourly\nUTC",
    ];

    #[test]
    fn common_events_are_taken_and_others_are_refused_with_the_word() {
        for text in TAKEN {
            assert_eq!(check(text), Ok(()), "{text}");
        }
        for text in REFUSED {
            assert!(check(text).is_err(), "{text:?}");
        }
        assert_eq!(check("every tuesday").unwrap_err(), "`every` is no weekday");
        assert_eq!(check("Mon 25:00").unwrap_err(), "`25` is no hour from 0 to 23, as in 5, 1..5 or 0/15");
        assert_eq!(check("2026-12-24").unwrap_err(), "`2026-12-24` names a year, and would not come again");
    }

    /// Every event of some thousand that is taken: one that systemd refuses would be a monitor that never runs.
    #[test]
    fn what_is_taken_systemd_takes_and_it_comes_again() {
        let numbers =
            ["*", "0", "07", "12", "31", "59", "1,5", "1..5", "5..1", "0/15", "20/3", "1..9/4", "*/5"];
        let days = ["", "Mon ", "sat,Sun ", "Tue..friday ", "Sun..Mon "];
        let mut events: Vec<String> = TAKEN.map(str::to_owned).to_vec();
        for (first, second) in numbers.iter().flat_map(|first| numbers.map(|second| (first, second))) {
            for day in days {
                events.push(format!("{day}{first}:{second}"));
                events.push(format!("{day}{first}:{second}:{first} UTC"));
                events.push(format!("{day}*-{first}-{second} {second}:{first}"));
                events.push(format!("{first}-{second}"));
            }
        }
        events.retain(|event| check(event).is_ok());
        assert!(events.len() > 500, "{}", events.len());
        let asked = Command::new("systemd-analyze").arg("calendar").args(&events).env("LC_ALL", "C").output();
        let Ok(asked) = asked else {
            planish_skip::skip("what_is_taken_systemd_takes_and_it_comes_again", "no systemd-analyze");
            return;
        };
        let (told, wrong) = (String::from_utf8_lossy(&asked.stdout), String::from_utf8_lossy(&asked.stderr));
        assert!(asked.status.success(), "{wrong}");
        assert_eq!(told.matches("Next elapse: ").count(), events.len(), "{told}");
        assert!(!told.contains("Next elapse: never"), "{told}");
    }
}
