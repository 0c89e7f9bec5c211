//! Real servers on loopback: rclone, which serves a folder as S3 and checks signatures, and Python's, by HTTP and TLS.

use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The keys of the test's server, and of nothing else.
pub const KEY: &str = "planish";
pub const SECRET: &str = "only-for-this-test";
pub const BUCKET: &str = "profiles";

/// As long as a loaded machine may take to start one.
const LIMIT: Duration = Duration::from_secs(60);

/// A server, which ends with this value.
pub struct Server {
    child: Child,
    pub port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

/// An S3-compatible server over a folder that has the bucket; `None`, said aloud, where none is installed.
pub fn s3(test: &str, folder: &Path) -> Option<Server> {
    let Some(rclone) = rclone() else {
        planish_skip::skip(test, "no rclone that serves S3: ./x test installs one");
        return None;
    };
    std::fs::create_dir_all(folder.join(BUCKET)).expect("room for a folder");
    let port = free_port();
    let mut command = Command::new(rclone);
    command.args(["serve", "s3", "--config", "/dev/null", "--addr", &format!("127.0.0.1:{port}")]);
    command.args(["--auth-key", &format!("{KEY},{SECRET}")]).arg(folder).env("HOME", folder);
    Some(started(command.stdout(Stdio::null()).stderr(Stdio::null()), port))
}

/// The one on the PATH, or the one that `./x test` keeps in the target folder. Debian's is older than S3 in it.
fn rclone() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_planish-store-s3"));
    let kept = program.ancestors().nth(2).map(|target| target.join("tools/rclone/bin/rclone"));
    let serves_s3 = |program: &PathBuf| {
        let asked = Command::new(program).args(["serve", "s3", "--help"]).stdin(Stdio::null()).output();
        asked.is_ok_and(|output| output.status.success())
    };
    kept.into_iter().chain([PathBuf::from("rclone")]).find(serves_s3)
}

/// Python's server over a folder, with a certificate where one is given.
pub fn web(test: &str, folder: &Path, certificate: Option<(&Path, &Path)>) -> Option<Server> {
    const SCRIPT: &str = "
import functools, http.server, ssl, sys
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
";
    let mut command = Command::new("python3");
    command.args(["-c", SCRIPT]).arg(folder);
    if let Some((certificate, key)) = certificate {
        command.arg(certificate).arg(key);
    }
    let Ok(mut child) = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn() else {
        planish_skip::skip(test, "no python3 that could serve");
        return None;
    };
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("it says its port");
    let port = line.trim().parse().expect("a port");
    Some(Server { child, port })
}

/// A server that takes connections and never answers.
pub fn deaf() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
    let port = listener.local_addr().expect("it is bound").port();
    (listener, port)
}

/// A port that nobody listens on, for now.
pub fn free_port() -> u16 {
    deaf().1
}

fn started(command: &mut Command, port: u16) -> Server {
    let child = command.stdin(Stdio::null()).spawn().expect("it was asked for its help");
    let server = Server { child, port };
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < LIMIT, "the server does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    server
}

/// A certificate for 127.0.0.1 and its key.
pub fn certificate(test: &str, folder: &Path) -> Option<(PathBuf, PathBuf)> {
    // By that of the system it would be one of an authority, which no server may have.
    const CONFIG: &str = "[req]\ndistinguished_name = name\nx509_extensions = server\n[name]\n[server]\n\
                          subjectAltName = IP:127.0.0.1\nbasicConstraints = CA:FALSE\n";
    let (certificate, key) = (folder.join("own.pem"), folder.join("own.key"));
    std::fs::write(folder.join("own.cnf"), CONFIG).expect("room for a file");
    let words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=planish -config";
    let mut command = Command::new("openssl");
    command
        .args(words.split(' '))
        .arg(folder.join("own.cnf"))
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate);
    let made = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !made.is_ok_and(|status| status.success()) {
        planish_skip::skip(test, "no openssl that makes a certificate");
        return None;
    }
    let mut text = String::new();
    std::fs::File::open(&certificate).expect("it was made").read_to_string(&mut text).expect("text");
    assert!(text.contains("BEGIN CERTIFICATE"));
    Some((certificate, key))
}
