//! TLS, spoken by other programs and by a client of its own.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, ProtocolVersion, RootCertStore, StreamOwned};

use crate::server::{PROGRAM, Server};

const OF_OPENSSL: &str = "[req]\ndistinguished_name = dn\nx509_extensions = v3\nprompt = no\n[dn]\nCN = localhost\n\
                          [v3]\nbasicConstraints = critical,CA:FALSE\n\
                          subjectAltName = DNS:localhost,IP:127.0.0.1\n";

/// A certificate and its key.
struct Pair {
    certificate: PathBuf,
    key: PathBuf,
}

impl Pair {
    fn options(&self) -> [&str; 4] {
        ["--tls-cert", self.certificate.to_str().unwrap(), "--tls-key", self.key.to_str().unwrap()]
    }
}

/// Makes a certificate for localhost; none where there is no openssl.
fn pair(folder: &Path, name: &str) -> Option<Pair> {
    let [config, certificate, key] = ["cnf", "crt", "key"].map(|end| folder.join(format!("{name}.{end}")));
    std::fs::write(&config, OF_OPENSSL).unwrap();
    let mut command = Command::new("openssl");
    command.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "30",
    ]);
    command.arg("-config").arg(config).arg("-keyout").arg(&key).arg("-out").arg(&certificate);
    let output = command.output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(Pair { certificate, key })
}

type Stream = StreamOwned<ClientConnection, TcpStream>;

/// A client that trusts one certificate; an error where the server has another.
fn connect(port: u16, trusted: &Path) -> Result<Stream, std::io::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(trusted).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    while client.is_handshaking() {
        client.complete_io(&mut stream)?;
    }
    Ok(StreamOwned::new(client, stream))
}

fn ask(mut stream: Stream, method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    stream.write_all(format!("{head}Content-Length: {length}\r\n\r\n{body}").as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_client_that_trusts_the_certificate_is_served_by_tls_and_nobody_without() {
    let test = "tls::a_client_that_trusts_the_certificate_is_served_by_tls_and_nobody_without";
    let folder = tempfile::tempdir().unwrap();
    let (Some(ours), Some(other)) = (pair(folder.path(), "a"), pair(folder.path(), "b")) else {
        return planish_skip::skip(test, "no openssl");
    };
    let options = [&ours.options()[..], &["--line-protocol", "127.0.0.1:0"]].concat();
    let server = Server::start_with(&folder.path().join("data"), &options);
    let stream = connect(server.port, &ours.certificate).unwrap();
    assert_eq!(stream.conn.protocol_version(), Some(ProtocolVersion::TLSv1_3));
    assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    let made = ask(stream, "POST", "/", crate::server::TRADES);
    assert!(made.starts_with("HTTP/1.1 200 "), "{made}");
    // Lines.
    let mut lines = connect(server.lines_port.unwrap(), &ours.certificate).unwrap();
    lines.write_all(b"trades,sym=a price=1,size=1i,fee=0 1\ntrades,sym=b price=1,size=2i,fee=0 2\n").unwrap();
    lines.conn.send_close_notify();
    lines.flush().unwrap();
    let mut word = String::new();
    lines.read_to_string(&mut word).unwrap();
    assert_eq!(word, "Ok. 2 rows\n");
    // One that is cut off without the end that TLS has.
    let mut cut = connect(server.lines_port.unwrap(), &ours.certificate).unwrap();
    cut.write_all(b"trades,sym=c price=1,size=4i,fee=0 3\ntrades,sym=c price=1,size=8i,fee=0 4\n").unwrap();
    cut.sock.shutdown(Shutdown::Write).unwrap();
    word.clear();
    cut.read_to_string(&mut word).unwrap();
    assert!(word.starts_with("Code: 23. DB::Exception: the connection broke"), "{word}");
    let asked =
        ask(connect(server.port, &ours.certificate).unwrap(), "POST", "/", "SELECT sum(size) FROM trades");
    assert!(asked.ends_with("\r\n\r\n15\n"), "{asked}");
    // Somebody who trusts another one, and somebody who speaks HTTP.
    let error = connect(server.port, &other.certificate).unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    let mut plain = server.connect();
    plain.write_all(b"GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    let _ = plain.read_to_end(&mut bytes);
    assert!(!bytes.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&bytes));
    let began = std::time::Instant::now();
    loop {
        let metrics = ask(connect(server.port, &ours.certificate).unwrap(), "GET", "/metrics", "");
        if metrics.contains("planish_series_tls_failures_total 2\n") {
            break;
        }
        assert!(began.elapsed().as_secs() < 30, "{metrics}");
    }
}

#[test]
fn curl_speaks_tls_with_it() {
    let test = "tls::curl_speaks_tls_with_it";
    let folder = tempfile::tempdir().unwrap();
    let Some(ours) = pair(folder.path(), "a") else { return planish_skip::skip(test, "no openssl") };
    let server = Server::start_with(&folder.path().join("data"), &ours.options());
    let url = format!("https://localhost:{}/", server.port);
    let curl = |words: &[&str]| {
        Command::new("curl").args(["--silent", "--show-error", "--max-time", "60", &url]).args(words).output()
    };
    let trusted = ["--cacert", ours.certificate.to_str().unwrap(), "--data-binary", "SELECT 6 * 7"];
    let Ok(answer) = curl(&trusted) else { return planish_skip::skip(test, "no curl") };
    assert_eq!(answer.stdout, b"42\n", "{}", String::from_utf8_lossy(&answer.stderr));
    // A peer that cannot be authenticated by the certificates that the system trusts.
    assert_eq!(curl(&["--data-binary", "SELECT 6 * 7"]).unwrap().status.code(), Some(60));
}

#[test]
fn a_certificate_that_is_renewed_is_shown_without_a_new_start() {
    let test = "tls::a_certificate_that_is_renewed_is_shown_without_a_new_start";
    let folder = tempfile::tempdir().unwrap();
    let (Some(ours), Some(new)) = (pair(folder.path(), "a"), pair(folder.path(), "b")) else {
        return planish_skip::skip(test, "no openssl");
    };
    let old = folder.path().join("old.crt");
    std::fs::copy(&ours.certificate, &old).unwrap();
    let mut server = Server::start_with(&folder.path().join("data"), &ours.options());
    let open = connect(server.port, &old).unwrap();
    // Half of a renewal is none.
    std::fs::copy(&new.certificate, &ours.certificate).unwrap();
    server.hang_up();
    let told = server.told();
    assert!(told.contains("stays the one that it was") && told.contains("do not go together"), "{told}");
    assert!(ask(connect(server.port, &old).unwrap(), "GET", "/ping", "").ends_with("Ok.\n"));
    std::fs::copy(&new.key, &ours.key).unwrap();
    server.hang_up();
    assert!(server.told().contains("the certificate was read again"));
    assert!(connect(server.port, &old).is_err());
    assert!(ask(connect(server.port, &new.certificate).unwrap(), "GET", "/ping", "").ends_with("Ok.\n"));
    // Connections of before go on.
    assert!(ask(open, "GET", "/ping", "").ends_with("Ok.\n"));
}

#[test]
fn files_that_are_no_certificate_and_key_are_refused() {
    let test = "tls::files_that_are_no_certificate_and_key_are_refused";
    let folder = tempfile::tempdir().unwrap();
    let (Some(ours), Some(other)) = (pair(folder.path(), "a"), pair(folder.path(), "b")) else {
        return planish_skip::skip(test, "no openssl");
    };
    let broken = folder.path().join("broken");
    let text = std::fs::read_to_string(&ours.certificate).unwrap();
    std::fs::write(&broken, &text[..text.len() / 2]).unwrap();
    let nowhere = folder.path().join("nowhere");
    let data = folder.path().join("data");
    let run = |words: &[&Path]| {
        let [certificate, key] = words else { unreachable!("two files") };
        let mut command = Command::new(PROGRAM);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&data);
        command.arg("--tls-cert").arg(certificate).arg("--tls-key").arg(key).output().unwrap()
    };
    for (words, told) in [
        ([&nowhere, &ours.key], "nowhere: No such file"),
        ([&ours.certificate, &nowhere], "nowhere: No such file"),
        ([&ours.key, &ours.key], "a.key has no certificate"),
        ([&ours.certificate, &ours.certificate], "a.crt has no private key"),
        ([&broken, &ours.key], "broken is no PEM: "),
        ([&ours.certificate, &other.key], "b.key do not go together: "),
    ] {
        let output = run(&words.map(PathBuf::as_path));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(3) && stderr.contains(told), "{told}: {stderr}");
    }
    assert!(!data.exists(), "nothing was done");
    let half = Command::new(PROGRAM).args(["serve", "--data", "x", "--tls-cert", "y"]).output().unwrap();
    assert_eq!(half.status.code(), Some(2));
}

#[test]
fn tokens_that_go_over_a_network_unencrypted_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    assert!(
        Command::new(PROGRAM).args(["token", "a", "--into"]).arg(&file).output().unwrap().status.success()
    );
    // It ends before it listens: there is no folder of tables, nor can there be one.
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--listen", "0.0.0.0:0", "--data", "/dev/null/x", "--tokens"]).arg(&file);
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    assert!(
        stderr.contains("0.0.0.0:0 is not loopback, and tokens and rows go there unencrypted"),
        "{stderr}"
    );
}
