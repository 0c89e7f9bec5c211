//! Who may ask a server: tokens of a file, which has their hashes alone.
//!
//! A line is `NAME read|write SHA256`, `#` begins a comment. A token is 32 random bytes, so its hash needs no salt and
//! no slow function: there is no list of such tokens to try. It is found by its hash, so that the time that takes tells
//! nothing about any token.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderValue};
use sha2::{Digest, Sha256};

/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;
/// Where clients of ClickHouse put a password.
const KEY_HEADER: &str = "x-clickhouse-key";

/// What the holder of a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Role {
    /// Ask.
    Read,
    /// Ask, write, and make tables.
    Write,
}

/// Tokens by their hashes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tokens(HashMap<[u8; 32], Role>);

/// Why there are no tokens.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("cannot {action} {path}")]
    File { action: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{path}, line {line}: {reason}")]
    Line { path: PathBuf, line: usize, reason: &'static str },
    #[error("{path} has no token; make one with planish-series token NAME --into {path}")]
    None { path: PathBuf },
    #[error("the system gives no random bytes")]
    Random,
}

impl Tokens {
    /// Those of a file.
    #[expect(clippy::disallowed_methods, reason = "a file of our own, not the host's")]
    pub(crate) fn of_file(path: &Path) -> Result<Self, TokenError> {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|source| TokenError::File { action: "read", path: path.into(), source })?;
        let wrong = |line: usize, reason| TokenError::Line { path: path.into(), line: line + 1, reason };
        let mut tokens = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
            let (role, hash) = match words[..] {
                [] => continue,
                [_, "read", hash] => (Role::Read, hash),
                [_, "write", hash] => (Role::Write, hash),
                [_, _, _] => return Err(wrong(number, "a role is read or write")),
                _ => return Err(wrong(number, "expected a name, a role and a hash")),
            };
            let hash = bytes_of(hash).ok_or_else(|| wrong(number, "a hash has 64 hexadecimal digits"))?;
            if tokens.insert(hash, role).is_some() {
                return Err(wrong(number, "this token is there twice"));
            }
        }
        if tokens.is_empty() {
            return Err(TokenError::None { path: path.into() });
        }
        Ok(Self(tokens))
    }

    /// What who sent these headers may do; none where nobody is named, or nobody whom the file knows.
    pub(crate) fn role(&self, headers: &HeaderMap) -> Option<Role> {
        self.role_of(&token_of(headers)?)
    }

    /// What the holder of a token may do; none where the file does not know it.
    pub(crate) fn role_of(&self, token: &[u8]) -> Option<Role> {
        self.0.get(<&[u8; 32]>::try_from(Sha256::digest(token).as_slice()).ok()?).copied()
    }
}

/// The token of a request: of a bearer, as clients of InfluxDB have it, the password of a user, or ClickHouse's own.
fn token_of(headers: &HeaderMap) -> Option<Vec<u8>> {
    if let Some(key) = headers.get(KEY_HEADER) {
        return Some(key.as_bytes().to_vec());
    }
    let (scheme, value) = headers.get(AUTHORIZATION).map(HeaderValue::to_str)?.ok()?.split_once(' ')?;
    match scheme.to_ascii_lowercase().as_str() {
        "bearer" | "token" => Some(value.trim().as_bytes().to_vec()),
        "basic" => {
            let pair = STANDARD.decode(value.trim()).ok()?;
            let colon = pair.iter().position(|&byte| byte == b':')?;
            Some(pair[colon + 1..].to_vec())
        }
        _ => None,
    }
}

/// Makes a token, puts its hash into a file, and returns it: nobody can read it there again.
pub(crate) fn make(name: &str, role: Role, path: &Path) -> Result<String, TokenError> {
    let mut random = [0; TOKEN_BYTES];
    getrandom::fill(&mut random).map_err(|_| TokenError::Random)?;
    let token = URL_SAFE_NO_PAD.encode(random);
    let role = match role {
        Role::Read => "read",
        Role::Write => "write",
    };
    let line = format!("{name} {role} {}\n", hexadecimal(&Sha256::digest(&token)));
    let file = std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| {
        file.write_all(line.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|source| TokenError::File { action: "write", path: path.into(), source })?;
    Ok(token)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn bytes_of(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| !pair.starts_with('+'))?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(header: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(header.parse().unwrap(), HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn a_token_is_known_however_it_is_sent_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        let reader = make("ann", Role::Read, &path).unwrap();
        let writer = make("bob", Role::Write, &path).unwrap();
        let tokens = Tokens::of_file(&path).unwrap();
        for (token, role) in [(&reader, Role::Read), (&writer, Role::Write)] {
            let basic = STANDARD.encode(format!("whoever:{token}"));
            for headers in [
                asked("authorization", &format!("Bearer {token}")),
                asked("authorization", &format!("token {token}")),
                asked("authorization", &format!("Basic {basic}")),
                asked(KEY_HEADER, token),
            ] {
                assert_eq!(tokens.role(&headers), Some(role), "{headers:?}");
            }
        }
        let basic = STANDARD.encode("bob");
        for (header, value) in [
            ("authorization", format!("Bearer {}", &reader[1..])),
            ("authorization", "Bearer ".to_owned()),
            ("authorization", reader.clone()),
            ("authorization", format!("Basic {basic}")),
            ("authorization", "Basic ?".to_owned()),
            (KEY_HEADER, String::new()),
            ("x-token", reader.clone()),
        ] {
            assert_eq!(tokens.role(&asked(header, &value)), None, "{header}: {value}");
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a file of this test")]
    fn a_file_of_tokens_is_read_to_the_letter() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        let token = make("ann", Role::Read, &path).unwrap();
        let line = std::fs::read_to_string(&path).unwrap();
        assert!(!line.contains(&token), "the file has the token itself");
        for (text, told) in [
            (format!("{line}{line}"), "line 2: this token is there twice"),
            ("# nobody\n".to_owned(), "has no token"),
            (line.replace("read", "admin"), "line 1: a role is read or write"),
            (line.replace("read ", ""), "line 1: expected a name, a role and a hash"),
            (line.replacen(char::is_numeric, "g", 1), "line 1: a hash has 64 hexadecimal digits"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Tokens::of_file(&path).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
