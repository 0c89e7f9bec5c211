//! A server in a process of its own, and a client that sees every byte of its answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_planish-series");
/// Trades with everything that a table may have.
pub const TRADES: &str =
    "CREATE TABLE trades (ts TIMESTAMP(3), sym SYMBOL, price DOUBLE, size BIGINT, fee DECIMAL(12, 2))";
/// Runs for hours, and gives way while it does.
pub const ENDLESS: &str = "SELECT sum(a.value + b.value + c.value) FROM generate_series(1, 20000) a, \
                           generate_series(1, 20000) b, generate_series(1, 20000) c";

/// A server at work; it is killed when this is dropped.
pub struct Server {
    child: Child,
    stderr: BufReader<ChildStderr>,
    pub port: u16,
    /// Of lines over TCP.
    pub lines_port: Option<u16>,
    /// What it told up to its start.
    pub start: String,
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// The body came to the end that its head, or its last chunk, says.
    pub is_whole: bool,
}

impl Reply {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    #[track_caller]
    pub fn ok(self) -> String {
        assert!(self.status == 200 && self.is_whole, "{} {}", self.status, self.text());
        self.text().to_owned()
    }
}

impl Server {
    pub fn start(data: &Path) -> Self {
        Self::start_with(data, &[])
    }

    pub fn start_with(data: &Path, options: &[&str]) -> Self {
        Self::start_in(data, options, &[])
    }

    /// With variables of its environment.
    pub fn start_in(data: &Path, options: &[&str], variables: &[(&str, &Path)]) -> Self {
        let mut command = Command::new(PROGRAM);
        command.envs(variables.iter().copied());
        command.arg("serve").arg("--data").arg(data).args(["--listen", "127.0.0.1:0", "--threads", "2"]);
        command.args(options).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut told = String::new();
        while !told.contains("listening on") {
            assert!(stderr.read_line(&mut told).unwrap() > 0, "it did not start: {told}");
        }
        let port_of = |scheme: &str| {
            let rest = told.split(&format!("{scheme}://127.0.0.1:")).nth(1)?;
            rest.split([',', '\n']).next()?.parse().ok()
        };
        let (port, lines_port) =
            (port_of("http").or(port_of("https")).unwrap(), port_of("tcp").or(port_of("tls")));
        Self { child, stderr, port, lines_port, start: told }
    }

    /// A server with the table of trades.
    pub fn with_trades(data: &Path, options: &[&str]) -> Self {
        let server = Self::start_with(data, options);
        server.post("/", TRADES).ok();
        server
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// A connection of lines over TCP.
    pub fn connect_lines(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.lines_port.unwrap())).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Sends a request whose head ends with these lines.
    pub fn send(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Reply {
        let mut stream = self.connect();
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        headers.iter().for_each(|line| head.push_str(&format!("{line}\r\n")));
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        stream.write_all(head.as_bytes()).unwrap();
        // One that is answered before it was read is closed.
        let _ = stream.write_all(body);
        read_reply(&mut stream)
    }

    pub fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], b"")
    }

    pub fn post(&self, path: &str, body: &str) -> Reply {
        self.send("POST", path, &[], body.as_bytes())
    }

    /// The answer to a query, without its last line feed.
    #[track_caller]
    pub fn ask(&self, sql: &str) -> String {
        self.post("/", sql).ok().trim_end_matches('\n').to_owned()
    }

    /// A number of `/metrics`.
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").ok();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    }

    /// Waits until a number of `/metrics` is what it should be.
    #[track_caller]
    pub fn wait_for(&self, name: &str, wanted: f64) {
        let began = Instant::now();
        while self.metric(name) != wanted {
            assert!(began.elapsed() < Duration::from_secs(30), "{name} is {}", self.metric(name));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it at once, wherever it is.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end; what it does, and tells.
    pub fn terminate(mut self) -> (ExitStatus, String) {
        self.ask_to_end();
        let mut told = String::new();
        self.stderr.read_to_string(&mut told).unwrap();
        (self.child.wait().unwrap(), told)
    }

    pub fn ask_to_end(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// Has it read again what may be read again.
    pub fn hang_up(&self) {
        self.signal(rustix::process::Signal::HUP);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }

    /// The next line that it tells.
    pub fn told(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads an answer to the end of its connection.
pub fn read_reply(stream: &mut TcpStream) -> Reply {
    let mut bytes = Vec::new();
    // What came before a cut is an answer too.
    let _ = stream.read_to_end(&mut bytes);
    let _ = stream.shutdown(Shutdown::Both);
    let at = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let at = at.unwrap_or_else(|| panic!("no head in {:?}", String::from_utf8_lossy(&bytes)));
    let head = String::from_utf8(bytes[..at].to_vec()).unwrap();
    let rest = &bytes[at + 4..];
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut reply = Reply { status, head, body: rest.to_vec(), is_whole: true };
    if reply.header("transfer-encoding") == Some("chunked") {
        (reply.body, reply.is_whole) = chunks(rest);
    } else if let Some(length) = reply.header("content-length") {
        reply.is_whole = length.parse() == Ok(rest.len());
    }
    reply
}

/// The bytes of chunks, and whether the last one is there.
fn chunks(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(line) = rest.windows(2).position(|two| two == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        let chunk = &rest[line + 2..];
        if length == 0 {
            return (body, true);
        }
        body.extend_from_slice(&chunk[..length.min(chunk.len())]);
        if chunk.len() < length + 2 {
            break;
        }
        rest = &chunk[length + 2..];
    }
    (body, false)
}

/// A text as it stands in an address.
pub fn in_address(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
