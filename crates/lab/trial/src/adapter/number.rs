//! A number in the output of a program, by regular expression or JSON pointer.

use regex_lite::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::outcome::Better;

/// Where a metric is found in the standard output of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Number {
    /// Name of the metric.
    pub name: String,
    /// Unit of its values.
    #[serde(default)]
    pub unit: String,
    /// The good direction.
    pub better: Better,
    /// A regular expression; its first group, or all of it, is the number. The last match counts.
    pub regex: Option<String>,
    /// A JSON pointer (RFC 6901), such as `/metrics/p99_ns`, into the output or into its last line that is
    /// JSON.
    pub pointer: Option<String>,
}

impl Number {
    /// Checks the row without any output: exactly one of the two ways, and one that can be read.
    ///
    /// # Errors
    /// What is wrong, for a message with the place of the row.
    pub fn check(&self) -> Result<(), String> {
        match (&self.regex, &self.pointer) {
            (Some(regex), None) => compile(regex).map(drop),
            (None, Some(pointer)) if pointer.is_empty() || pointer.starts_with('/') => Ok(()),
            (None, Some(pointer)) => Err(format!("a JSON pointer starts with a slash: `{pointer}`")),
            _ => Err(format!("metric `{}` needs either `regex` or `pointer`", self.name)),
        }
    }

    /// The number in an output.
    pub(crate) fn find(&self, output: &str) -> Result<f64, String> {
        let text = match (&self.regex, &self.pointer) {
            (Some(regex), _) => by_regex(&compile(regex)?, output),
            (None, Some(pointer)) => by_pointer(pointer, output),
            (None, None) => None,
        };
        let text = text.ok_or_else(|| format!("the output has no `{}`", self.name))?;
        let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(|| format!("`{}` is not a number: `{text}`", self.name))
    }
}

fn compile(regex: &str) -> Result<Regex, String> {
    Regex::new(regex).map_err(|error| format!("`{regex}` is no regular expression: {error}"))
}

fn by_regex(regex: &Regex, output: &str) -> Option<String> {
    let captures = regex.captures_iter(output).last()?;
    captures.get(1).or_else(|| captures.get(0)).map(|found| found.as_str().to_owned())
}

fn by_pointer(pointer: &str, output: &str) -> Option<String> {
    let whole = serde_json::from_str::<Value>(output).ok();
    let document = whole.or_else(|| output.lines().rev().find_map(|line| serde_json::from_str(line).ok()))?;
    match document.pointer(pointer)? {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(regex: Option<&str>, pointer: Option<&str>) -> Number {
        Number {
            name: "x".to_owned(),
            unit: "ms".to_owned(),
            better: Better::Lower,
            regex: regex.map(str::to_owned),
            pointer: pointer.map(str::to_owned),
        }
    }

    #[test]
    fn the_last_match_of_the_first_group_counts() {
        let by_group = number(Some(r"mean ([0-9.e+]+) ms"), None);
        assert_eq!(by_group.find("mean 1.5 ms\nmean 2.5e1 ms\n"), Ok(25.0));
        assert_eq!(by_group.find("nothing"), Err("the output has no `x`".to_owned()));
        assert_eq!(number(Some("[0-9]+"), None).find("a 12 b"), Ok(12.0));
    }

    #[test]
    fn a_pointer_looks_into_the_output_or_its_last_json_line() {
        let pointer = number(None, Some("/metrics/0/p99"));
        assert_eq!(pointer.find("{\"metrics\":[{\"p99\":7}]}"), Ok(7.0));
        assert_eq!(pointer.find("start\n{\"metrics\":[{\"p99\":\"7.5\"}]}\nend\n"), Ok(7.5));
        assert!(pointer.find("{\"metrics\":[{\"p99\":null}]}").is_err());
    }

    #[test]
    fn rows_are_checked_before_anything_runs() {
        assert!(number(Some("a(b"), None).check().is_err());
        assert!(number(None, Some("metrics")).check().is_err());
        assert!(number(None, None).check().is_err());
        assert!(number(Some("a"), Some("/a")).check().is_err());
        assert!(number(None, Some("/a")).check().is_ok());
    }

    #[test]
    fn infinity_is_no_measurement() {
        assert!(number(Some("x=(.*)"), None).find("x=inf").is_err());
    }
}
