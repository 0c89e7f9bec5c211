//! `planish-store-s3 get|put|list URL`, `delete-if URL SECONDS`: objects of a store beyond this machine, on stdin or
//! stdout.
//!
//! `planish` starts it by the contract of `planish_store::contract`: it links neither TLS nor S3, which are C and some
//! eighty crates. Keys and places come from the environment, as for other programs that speak S3: `AWS_ACCESS_KEY_ID`,
//! `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL` and their like, or from the machine's role.

#![forbid(unsafe_code)]

mod object;

use std::error::Error;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use planish_store::contract::{CHANGED, DELETE_IF, DONE, FAILED, GET, LIST, MISSING, PUT, USAGE};

use object::{Object, ObjectError};

const HELP: &str = "\
usage: planish-store-s3 get|put|list URL
       planish-store-s3 delete-if URL SECONDS

Hands the object of URL to stdout, takes it from stdin, lists what is below URL, or deletes the object of URL unless it
was put anew since SECONDS, as the list tells them: s3://BUCKET/PATH, and https://HOST/PATH to get.
planish text publish, text fetch and text prune start it; what it is told and what it ends with: docs/text-publish.md
";

fn main() -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        [GET, url] => get(url),
        [PUT, url] => put(url),
        [LIST, url] => list(url),
        [DELETE_IF, url, seconds] => delete_if(url, seconds),
        ["--version"] => say(concat!("planish-store-s3 ", env!("CARGO_PKG_VERSION"), "\n")),
        ["--help" | "-h"] => say(HELP),
        _ => {
            let _ = io::stderr().write_all(HELP.as_bytes());
            return ExitCode::from(USAGE);
        }
    };
    let Err(error) = done else { return ExitCode::from(DONE) };
    let _ = writeln!(io::stderr(), "{}", chain(&error));
    ExitCode::from(match error {
        ObjectError::Url { .. }
        | ObjectError::NotS3 { .. }
        | ObjectError::Seconds { .. }
        | ObjectError::Settings(_) => USAGE,
        ObjectError::Missing => MISSING,
        ObjectError::Changed => CHANGED,
        _ => FAILED,
    })
}

fn get(url: &str) -> Result<(), ObjectError> {
    let bytes = Object::at(url)?.get()?;
    io::stdout().write_all(&bytes).and_then(|()| io::stdout().flush()).map_err(ObjectError::Stream)
}

fn put(url: &str) -> Result<(), ObjectError> {
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes).map_err(ObjectError::Stream)?;
    Object::at(url)?.put(bytes)
}

fn list(url: &str) -> Result<(), ObjectError> {
    let listed = Object::at(url)?.list()?;
    say(&listed.iter().map(|(bytes, put_at, name)| format!("{bytes} {put_at} {name}\n")).collect::<String>())
}

fn delete_if(url: &str, seconds: &str) -> Result<(), ObjectError> {
    let put_at = seconds.parse().map_err(|_| ObjectError::Seconds { text: seconds.to_owned() })?;
    Object::at(url)?.delete(put_at)
}

fn say(text: &str) -> Result<(), ObjectError> {
    io::stdout().write_all(text.as_bytes()).map_err(ObjectError::Stream)
}

/// An error and its causes, each told once: those of other crates repeat what stands below them.
fn chain(error: &dyn Error) -> String {
    let mut told: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(cause) = next {
        let text = brief(&cause.to_string());
        if !told.iter().any(|earlier| earlier.contains(&text)) {
            told.push(text);
        }
        next = cause.source();
    }
    told.join(": ")
}

/// A text without the page that a server answered with, but for what it has to say: the rest repeats the request, with
/// the name of the key.
fn brief(text: &str) -> String {
    let page = text.find("<?xml").or_else(|| text.find("<Error>")).or_else(|| text.find("<html"));
    let Some((before, page)) = page.map(|at| text.split_at(at)) else { return text.trim().to_owned() };
    let message = page.split_once("<Message>").and_then(|(_, rest)| rest.split_once("</Message>"));
    let message = message.map_or("", |(message, _)| message);
    format!("{}{message}", before.trim_start())
}

#[cfg(test)]
mod tests {
    use super::brief;

    #[test]
    fn a_page_is_told_by_its_message() {
        let page = "Server returned 403 Forbidden: <?xml version=\"1.0\"?>\n<Error><Code>X</Code><Message>The keys do \
                    not match</Message><AWSAccessKeyId>me</AWSAccessKeyId></Error>";
        assert_eq!(brief(page), "Server returned 403 Forbidden: The keys do not match");
        assert_eq!(brief(" no route to host\n"), "no route to host");
        assert_eq!(brief("502 Bad Gateway: <html><body>a page</body></html>"), "502 Bad Gateway: ");
    }
}
