//! What commands of planish and valgrind say of a program, as facts of an arm.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::file::TextWord;

/// What is simulated: the cache or TLB in valgrind's words, and the fact that its misses become.
///
/// L1i is 32 KB in 8 ways. A TLB of 64 entries is a cache of 64 lines, each as long as a page.
pub(super) const SIMULATED: [(&str, &str); 2] =
    [("--I1=32768,8,64", "l1i_misses_per_million"), ("--I1=262144,64,4096", "itlb_4k_misses_per_million")];

/// A TLB of 8 entries for pages of 2 MiB, which is what many CPUs have for them. All code is on such pages here, that
/// of libraries too.
pub(super) const SIMULATED_HUGE: (&str, &str) = ("--I1=16777216,8,2097152", "itlb_2m_misses_per_million");

/// Words of an arm for people.
pub(super) fn words(words: &[TextWord]) -> String {
    let word = |word: &TextWord| json!(word).as_str().unwrap_or_default().to_owned();
    words.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// The result of a command that printed a JSON object; what it says is wrong where it has none.
pub(super) fn result(stdout: &str) -> Result<Value, String> {
    let told: Value =
        serde_json::from_str(stdout).map_err(|error| format!("its answer is no JSON: {error}"))?;
    match told.get("result") {
        Some(result) if !result.is_null() => Ok(result.clone()),
        _ => Err(said(&told)),
    }
}

/// The error of an answer, with its hints.
fn said(answer: &Value) -> String {
    let messages = answer.get("messages").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let text = |message: &Value| message.get("text").and_then(Value::as_str).map(str::to_owned);
    let errors =
        messages.iter().filter(|message| message.get("level").and_then(Value::as_str) == Some("error"));
    let errors: Vec<String> = errors.filter_map(text).collect();
    if errors.is_empty() { "it says nothing".to_owned() } else { errors.join("; ") }
}

/// The order that was taken.
pub(super) fn order(result: &Value) -> BTreeMap<String, Value> {
    let chosen = result.get("chosen").cloned().unwrap_or_default();
    let rows = result.get("orders").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let row = rows.iter().find(|row| row.get("name") == Some(&chosen));
    let gain = row.and_then(|row| row.get("gain")).cloned().unwrap_or_default();
    [("order".to_owned(), chosen), ("order_fetch_cycles_saved".to_owned(), gain)].into()
}

/// What BOLT did.
pub(super) fn bolt(result: &Value) -> BTreeMap<String, Value> {
    let told = [
        ("version", "bolt_version"),
        ("profiled", "bolt_functions"),
        ("taken_before", "taken_branches_before"),
        ("taken_after", "taken_branches_after"),
    ];
    picked(result, &told)
}

/// The pages that hold the samples of a program, and what of its text is on huge pages.
pub(super) fn verify(result: &Value) -> BTreeMap<String, Value> {
    let rows = result.get("pages").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut facts = match rows.first() {
        Some(row) => {
            let pages = [
                ("p90", "pages_4k_90"),
                ("p99", "pages_4k_99"),
                ("of_functions_p99", "pages_4k_of_functions_99"),
            ];
            picked(row, &pages)
        }
        None => BTreeMap::new(),
    };
    if let Some(cache) = result.get("cache") {
        let cached = [("whole_bytes", "text_whole_bytes"), ("huge_bytes", "text_huge_bytes")];
        facts.extend(picked(cache, &cached));
    }
    facts
}

/// Misses for a million instructions, of what cachegrind printed.
pub(super) fn misses(stderr: &str) -> Option<f64> {
    let count = |label: &str| {
        let mut lines = stderr.lines().filter_map(|line| line.strip_prefix("==")?.split_once("== "));
        let (_, text) = lines.find(|(_, text)| text.starts_with(label))?;
        text[label.len()..].trim().replace(',', "").parse::<f64>().ok()
    };
    let instructions = count("I   refs:").or_else(|| count("I refs:")).filter(|count| *count > 0.0)?;
    Some(1e6 * count("I1  misses:").or_else(|| count("I1 misses:"))? / instructions)
}

/// What these misses cost in all, in cycles for a million instructions, about: 14 for what is not in L1i, and 7 for a
/// page that is not in the first TLB, as in the walk of `text order`. `None` where they were not simulated.
pub(super) fn fetch_cost(misses: &BTreeMap<String, Value>) -> Option<f64> {
    let [l1i, itlb] = SIMULATED.map(|(_, fact)| misses.get(fact).and_then(Value::as_f64));
    Some(14.0 * l1i? + 7.0 * itlb?)
}

/// These members of an object under other names; what is not there is left out.
fn picked(object: &Value, names: &[(&str, &str)]) -> BTreeMap<String, Value> {
    let member = |(from, to): &(&str, &str)| Some(((*to).to_owned(), object.get(from)?.clone()));
    names.iter().filter_map(member).filter(|(_, value)| !value.is_null()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of valgrind 3.19, with the words of the program between.
    const CACHEGRIND: &str = "\
==7422== Cachegrind, a cache and branch-prediction profiler
2026-11-30 LOG:  checkpoint starting
--7422-- warning: L3 cache found, using its data for the LL simulation.
==7422== 
==7422== I   refs:      272,078,640
==7422== I1  misses:        354,309
==7422== LLi misses:          1,134
==7422== I1  miss rate:        0.13%
";

    #[test]
    fn misses_are_told_for_a_million_instructions() {
        let found = misses(CACHEGRIND).expect("both lines are there");
        assert!((found - 1302.2).abs() < 0.1, "{found}");
        assert_eq!(misses("==1== I   refs: 0\n==1== I1  misses: 0\n"), None);
        assert_eq!(misses("valgrind: bad option"), None);
    }

    #[test]
    fn an_answer_gives_its_result_or_its_errors() {
        let good =
            result("{\"result\": {\"chosen\": \"c3\", \"orders\": [{\"name\": \"c3\", \"gain\": 0.1}]}}");
        let facts = order(&good.expect("a result"));
        assert_eq!((&facts["order"], &facts["order_fetch_cycles_saved"]), (&json!("c3"), &json!(0.1)));
        let bad = "{\"result\": null, \"messages\": [{\"level\": \"error\", \"text\": \"no llvm-bolt\"}]}";
        assert_eq!(result(bad), Err("no llvm-bolt".to_owned()));
        assert!(result("").expect_err("nothing").starts_with("its answer is no JSON"));
        assert_eq!(words(&[TextWord::LldCdsort, TextWord::Huge]), "lld-cdsort, huge");
    }
}
