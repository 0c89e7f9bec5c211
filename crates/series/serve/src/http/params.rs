//! What stands behind the question mark of a request.

use std::collections::BTreeMap;
use std::time::Duration;

use planish_ingest::{Faults, Unit};

use crate::failure::{Failure, Kind};

/// Parameters that clients of ClickHouse send, and that change nothing of what is answered here.
const WITHOUT_EFFECT: [&str; 7] = [
    "buffer_size",
    "query_id",
    "send_progress_in_http_headers",
    "session_id",
    "session_timeout",
    "user",
    "wait_end_of_query",
];

/// Before the name of a value for the query.
const PARAMETER: &str = "param_";

/// Of a request at `/`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Params {
    pub(crate) query: String,
    /// Values of what the query has in braces, by their names.
    pub(crate) values: BTreeMap<String, String>,
    pub(crate) format: Option<String>,
    pub(crate) time: Option<Duration>,
    pub(crate) memory_bytes: Option<usize>,
    pub(crate) faults: Faults,
    /// The answer may be packed, if its client can take that.
    pub(crate) is_compressed: bool,
}

impl Params {
    /// # Errors
    /// The first that is not known, or has a value that means nothing.
    pub(crate) fn of(text: &str) -> Result<Self, Failure> {
        let mut params = Self {
            query: String::new(),
            values: BTreeMap::new(),
            format: None,
            time: None,
            memory_bytes: None,
            faults: Faults::Refuse,
            is_compressed: false,
        };
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            match &*name {
                "query" => params.query = value.into_owned(),
                "default_format" => params.format = Some(value.into_owned()),
                "max_execution_time" => params.time = Some(seconds(&name, &value)?),
                "max_memory_usage" => params.memory_bytes = Some(bytes(&name, &value)?),
                "faults" => params.faults = faults(&value)?,
                "enable_http_compression" => params.is_compressed = value == "1",
                "database" if value == "default" || value.is_empty() => {}
                "database" => {
                    let text = format!("no database {value}; there is one, default");
                    return Err(Failure::new(Kind::UnknownDatabase, text));
                }
                name if name.starts_with(PARAMETER) => {
                    params.values.insert(name[PARAMETER.len()..].to_owned(), value.into_owned());
                }
                name if WITHOUT_EFFECT.contains(&name) => {}
                name => {
                    let text = format!("no setting {name}");
                    return Err(Failure::new(Kind::UnknownSetting, text));
                }
            }
        }
        Ok(params)
    }
}

/// Of a request at `/write`: what times count, and what becomes of lines with a fault.
///
/// # Errors
/// A value that means nothing. Other parameters are names of databases and the like, of which there are none here.
pub(crate) fn of_write(text: &str) -> Result<(Unit, Faults), Failure> {
    let (mut unit, mut on_fault) = (Unit::Nanoseconds, Faults::Refuse);
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        match &*name {
            "precision" => unit = Unit::named(&value).ok_or_else(|| wrong(&name, &value))?,
            "faults" => on_fault = faults(&value)?,
            _ => {}
        }
    }
    Ok((unit, on_fault))
}

fn wrong(name: &str, value: &str) -> Failure {
    Failure::new(Kind::BadArguments, format!("{value:?} is no value of {name}"))
}

fn faults(value: &str) -> Result<Faults, Failure> {
    match value {
        "refuse" => Ok(Faults::Refuse),
        "leave_out" => Ok(Faults::LeaveOut),
        _ => Err(wrong("faults", value)),
    }
}

/// None of them is no bound of its own.
fn seconds(name: &str, value: &str) -> Result<Duration, Failure> {
    let seconds = value.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let seconds = seconds.ok_or_else(|| wrong(name, value))?;
    Ok(if seconds.is_zero() { Duration::MAX } else { seconds })
}

fn bytes(name: &str, value: &str) -> Result<usize, Failure> {
    let bytes = value.parse().map_err(|_| wrong(name, value))?;
    Ok(if bytes == 0 { usize::MAX } else { bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_those_of_clickhouse() {
        let params = Params::of(
            "query=SELECT%201+%2B+1&default_format=JSON&max_execution_time=0.5&max_memory_usage=100&database=default\
             &query_id=7&param_sym=a%26b&faults=leave_out&enable_http_compression=1",
        );
        let wanted = Params {
            query: "SELECT 1 + 1".to_owned(),
            values: [("sym".to_owned(), "a&b".to_owned())].into(),
            format: Some("JSON".to_owned()),
            time: Some(Duration::from_millis(500)),
            memory_bytes: Some(100),
            faults: Faults::LeaveOut,
            is_compressed: true,
        };
        assert_eq!(params, Ok(wanted));
        let unbounded = Params::of("max_execution_time=0&max_memory_usage=0").unwrap();
        assert_eq!((unbounded.time, unbounded.memory_bytes), (Some(Duration::MAX), Some(usize::MAX)));
        for (text, kind) in [
            ("database=other", Kind::UnknownDatabase),
            ("max_threads=1", Kind::UnknownSetting),
            ("max_execution_time=-1", Kind::BadArguments),
            ("max_execution_time=nan", Kind::BadArguments),
            ("max_memory_usage=1k", Kind::BadArguments),
            ("faults=ignore", Kind::BadArguments),
        ] {
            assert_eq!(Params::of(text).unwrap_err().kind, kind, "{text}");
        }
    }

    #[test]
    fn precisions_are_those_of_influxdb() {
        for (text, unit) in [("", Unit::Nanoseconds), ("db=x&precision=u", Unit::Microseconds)] {
            assert_eq!(of_write(text), Ok((unit, Faults::Refuse)));
        }
        assert_eq!(of_write("precision=s&faults=leave_out"), Ok((Unit::Seconds, Faults::LeaveOut)));
        assert!(of_write("precision=weeks").is_err());
    }
}
