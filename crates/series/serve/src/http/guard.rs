//! Who is let in.
//!
//! Without tokens a server listens on loopback alone, and whoever has an account on the machine may ask it. So may, by
//! a browser on it, every web page, unless pages are kept out: a page of elsewhere that sends a form says where it is
//! from (`Origin`), and one that has its own name point to this machine says that name (`Host`).

use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::{HOST, HeaderName, ORIGIN};

use crate::failure::{Failure, Kind};
use crate::tokens::{Role, Tokens};

/// What who sent these headers may do.
///
/// # Errors
/// [`Kind::Unauthenticated`], [`Kind::Denied`].
pub(crate) fn role(tokens: Option<&Tokens>, headers: &HeaderMap) -> Result<Role, Failure> {
    match tokens {
        Some(tokens) => tokens.role(headers).ok_or_else(|| {
            let text = "a token is asked for: Authorization: Bearer TOKEN";
            Failure::new(Kind::Unauthenticated, text)
        }),
        None => {
            for (header, is_url) in [(HOST, false), (ORIGIN, true)] {
                is_here(headers, &header, is_url)?;
            }
            Ok(Role::Write)
        }
    }
}

/// Asks whether a role may write.
///
/// # Errors
/// [`Kind::ReadOnly`].
pub(crate) fn may_write(role: Role) -> Result<(), Failure> {
    match role {
        Role::Write => Ok(()),
        Role::Read => Err(Failure::new(Kind::ReadOnly, "this token may ask, and not write")),
    }
}

fn is_here(headers: &HeaderMap, header: &HeaderName, is_url: bool) -> Result<(), Failure> {
    for value in headers.get_all(header) {
        let host = value.to_str().ok().and_then(|value| match is_url {
            true => value.split_once("://").map(|(_, host)| host),
            false => Some(value),
        });
        if !host.is_some_and(is_loopback) {
            let text = format!(
                "the request is of {value:?} by its {header}; without tokens only names of loopback are served"
            );
            return Err(Failure::new(Kind::Denied, text));
        }
    }
    Ok(())
}

/// Whether a host, with or without a port, is a name of loopback.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn pages_of_elsewhere_are_kept_out() {
        let asked = |header: HeaderName, value: &str| {
            role(None, &HeaderMap::from_iter([(header, HeaderValue::from_str(value).unwrap())]))
        };
        for host in ["localhost", "LOCALHOST:8123", "127.0.0.1:8123", "127.1.2.3", "[::1]:8123"] {
            assert_eq!(asked(HOST, host), Ok(Role::Write), "{host}");
            assert_eq!(asked(ORIGIN, &format!("http://{host}")), Ok(Role::Write), "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example:8123", "10.0.0.1", "[::2]", "", "127.0.0.1.nip.io"]
        {
            assert_eq!(asked(HOST, host).unwrap_err().kind, Kind::Denied, "{host}");
            assert_eq!(asked(ORIGIN, &format!("http://{host}")).unwrap_err().kind, Kind::Denied, "{host}");
        }
        assert_eq!(asked(ORIGIN, "null").unwrap_err().kind, Kind::Denied);
        assert_eq!(role(None, &HeaderMap::new()), Ok(Role::Write));
    }
}
