//! Requests at a fixed rate, timed from the moment they were *meant* to be sent.
//!
//! A load that waits for each answer before the next request stops asking exactly while the server is slow,
//! and so forgets its worst moments (coordinated omission). Here the schedule is fixed before the first
//! request; a request that finds all connections busy is sent late, and its lateness is part of its latency.
//! So does one that forgets what failed: a request that timed out was among the slowest. It stays, with the time that
//! it took to fail, and counts in `error_rate` too. `ops_per_s` and CPU time per operation are of what was answered.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ureq::Agent;

use super::latency;
use crate::collect::{Snapshot, add_stranger};
use crate::control::{Stop, is_time};
use crate::outcome::Better;
use crate::sample::{ArmError, Sample, Window};

/// Requests per second that a schedule is made for: the slowest sends one in a quarter of an hour.
const RATE_MIN: f64 = 0.001;
const RATE_MAX: f64 = 1e7;

/// Most connections: each has a thread of its own.
const CONNECTIONS_MAX: usize = 1024;

/// A load of HTTP requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpLoad {
    /// Where to; `http://` only.
    pub url: String,
    /// Requests per second.
    pub rate: f64,
    /// Length of the measured window in seconds.
    pub seconds: f64,
    /// Requests of the same rate before the window, in seconds; they are not measured.
    #[serde(default)]
    pub warmup_seconds: f64,
    /// Connections, each with one request in flight at most.
    #[serde(default = "connections")]
    pub connections: usize,
    /// Body of a POST; without one it is a GET.
    pub body: Option<String>,
    /// Seconds after which a request has failed.
    #[serde(default = "timeout_seconds")]
    pub timeout_seconds: f64,
}

fn connections() -> usize {
    8
}

fn timeout_seconds() -> f64 {
    10.0
}

/// Requests of a window, for a median that means something, and windows of a unit at most.
const WINDOW_REQUESTS: f64 = 20.0;
const WINDOWS_MAX: usize = 40;

/// How much of the limit of a unit a load may take that is made longer for its windows.
const LENGTHENED_MAX: f64 = 0.9;

/// The schedule of one load.
struct Schedule {
    begun: Instant,
    /// Requests.
    count: u64,
    /// Windows that they are told apart in.
    windows: usize,
    next: AtomicU64,
}

/// What one connection has seen.
struct Seen {
    /// Of what was answered and of what failed.
    latencies: Histogram<u64>,
    /// The latencies once more, by the window in which each request was meant to be sent.
    windows: Vec<Vec<f64>>,
    failed: u64,
    last_error: Option<String>,
}

impl Seen {
    fn nothing(windows: usize) -> Self {
        Self {
            latencies: latency::histogram(),
            windows: vec![Vec::new(); windows],
            failed: 0,
            last_error: None,
        }
    }

    fn add(&mut self, other: Self) {
        self.latencies.add(&other.latencies).expect("both histograms have the same bounds");
        for (window, more) in self.windows.iter_mut().zip(other.windows) {
            window.extend(more);
        }
        self.failed += other.failed;
        self.last_error = other.last_error.or_else(|| self.last_error.take());
    }

    /// The median of each window; none where the server left one without any answer.
    fn medians(&self) -> Vec<f64> {
        let medians: Vec<f64> =
            self.windows.iter().map(|window| planish_stats::summary::median(window)).collect();
        if medians.iter().all(|median| median.is_finite()) { medians } else { Vec::new() }
    }
}

impl HttpLoad {
    /// Checks the numbers before anything runs.
    ///
    /// # Errors
    /// The field that is wrong, and why.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if !self.url.starts_with("http://") {
            return Err(("url", format!("only http:// is spoken here, not `{}`", self.url)));
        }
        let positive = [
            ("rate", self.rate),
            ("seconds", self.seconds),
            ("timeout_seconds", self.timeout_seconds),
            ("connections", self.connections as f64),
        ];
        if let Some((name, value)) =
            positive.into_iter().find(|(_, value)| !(value.is_finite() && *value > 0.0))
        {
            return Err((name, format!("`{name}` must be above zero, not {value}")));
        }
        if !(RATE_MIN..=RATE_MAX).contains(&self.rate) {
            let message =
                format!("`rate` is from {RATE_MIN} to {RATE_MAX} requests a second, not {}", self.rate);
            return Err(("rate", message));
        }
        if self.connections > CONNECTIONS_MAX {
            let message = format!("`connections` is {CONNECTIONS_MAX} at most, not {}", self.connections);
            return Err(("connections", message));
        }
        let times = [
            ("seconds", self.seconds),
            ("warmup_seconds", self.warmup_seconds),
            ("timeout_seconds", self.timeout_seconds),
        ];
        match times.into_iter().find(|(_, value)| !is_time(*value)) {
            Some((name, value)) => {
                Err((name, format!("`{name}` is a time from zero to 30 days, in seconds, not {value}")))
            }
            None => Ok(()),
        }
    }

    /// Sends what is not measured, for so long or for as long as the file says.
    pub(super) fn warm_up(&self, time: Duration, limit: Duration, stop: &Stop) -> Result<(), ArmError> {
        let seconds = self.warmup_seconds.max(time.as_secs_f64());
        if seconds > 0.0 { self.send(seconds, limit, stop).map(drop) } else { Ok(()) }
    }

    /// Sends the load and measures it; for longer than the file says where that gives it so many windows.
    pub(super) fn run(
        &self,
        windows: Option<usize>,
        limit: Duration,
        stop: &Stop,
    ) -> Result<Sample, ArmError> {
        let before = Snapshot::take();
        let seconds = self.seconds_for(windows, limit);
        let (seen, elapsed) = self.send(seconds, limit, stop)?;
        let sent = seen.latencies.len();
        let done = sent - seen.failed;
        if done == 0 {
            let error = seen.last_error.unwrap_or_else(|| "no request was sent".to_owned());
            return Err(ArmError::crashed(format!("no request was answered: {error}")));
        }
        let mut sample = Sample::default();
        latency::add(&mut sample, &seen.latencies);
        sample.put("ops_per_s", "1/s", Better::Higher, done as f64 / elapsed.as_secs_f64());
        sample.operations = Some(done as f64);
        sample.put("error_rate", "share", Better::Lower, seen.failed as f64 / sent as f64);
        sample.windows = seen.medians();
        if !sample.windows.is_empty() {
            let length = seconds / sample.windows.len() as f64;
            sample.window =
                Some(Window { metric: "p50_ns".to_owned(), length: Duration::from_secs_f64(length) });
        }
        before.add_growth(&mut sample);
        add_stranger(&mut sample, "the server was not started by this trial");
        Ok(sample)
    }

    /// Length of a load that shall have so many windows, as far as its limit allows.
    fn seconds_for(&self, windows: Option<usize>, limit: Duration) -> f64 {
        let enough = windows.map_or(0.0, |windows| windows as f64 * WINDOW_REQUESTS / self.rate);
        self.seconds.max(enough.min(LENGTHENED_MAX * limit.as_secs_f64()))
    }

    /// Sends the requests of so many seconds. None is begun after `limit`, however many a slow server has left, and the
    /// load has failed by then: the last answers are waited for as long again at most.
    fn send(&self, seconds: f64, limit: Duration, stop: &Stop) -> Result<(Seen, Duration), ArmError> {
        let config = Agent::config_builder()
            .timeout_global(Some(Duration::from_secs_f64(self.timeout_seconds).min(limit)))
            .http_status_as_error(false)
            // The server that is named is measured, and neither a proxy that the shell names nor where it leads to.
            .proxy(None)
            .max_redirects(0)
            .max_idle_connections_per_host(self.connections)
            .build();
        let agent = Agent::from(config);
        let count = ((self.rate * seconds).round() as u64).max(1);
        let windows = ((count as f64 / WINDOW_REQUESTS) as usize).min(WINDOWS_MAX);
        let all = Mutex::new(Seen::nothing(windows));
        let schedule = Schedule { begun: Instant::now(), count, windows, next: AtomicU64::new(0) };
        let until = stop.until(schedule.begun + limit);
        let connect = || {
            let seen = self.connection(&agent, &schedule, &until);
            all.lock().expect("no connection panics while it holds the lock").add(seen);
        };
        let started = std::thread::scope(|scope| {
            (0..self.connections).try_for_each(|_| {
                // A limit of the control group or of the user may refuse a thread, where a plain spawn panics.
                std::thread::Builder::new().spawn_scoped(scope, connect).map(drop).inspect_err(|_| {
                    // Those that run already have nothing left to send.
                    schedule.next.store(schedule.count, Ordering::Relaxed);
                })
            })
        });
        if stop.is_set() {
            return Err(ArmError::Stopped);
        }
        started.map_err(|error| {
            let count = self.connections;
            ArmError::crashed(format!("no thread for each of {count} connections: {error}; try fewer"))
        })?;
        let elapsed = schedule.begun.elapsed();
        if elapsed >= limit {
            return Err(ArmError::TimedOut { after: limit });
        }
        let seen = all.into_inner().expect("no connection panics while it holds the lock");
        Ok((seen, elapsed))
    }

    /// One connection: takes the next request of the schedule, waits for its moment, sends it.
    fn connection(&self, agent: &Agent, schedule: &Schedule, stop: &Stop) -> Seen {
        let mut seen = Seen::nothing(schedule.windows);
        loop {
            let index = schedule.next.fetch_add(1, Ordering::Relaxed);
            if index >= schedule.count {
                return seen;
            }
            let window = (index as u128 * schedule.windows as u128 / u128::from(schedule.count)) as usize;
            let meant = schedule.begun + Duration::from_secs_f64(index as f64 / self.rate);
            if !stop.sleep(meant.saturating_duration_since(Instant::now())) {
                return seen;
            }
            let answered = self.request(agent);
            let latency = meant.elapsed().as_nanos();
            seen.latencies.saturating_record(u64::try_from(latency).unwrap_or(u64::MAX));
            seen.windows.get_mut(window).into_iter().for_each(|window| window.push(latency as f64));
            if let Err(error) = answered {
                seen.failed += 1;
                seen.last_error = Some(error);
            }
        }
    }

    /// One request with its whole answer; a status of 400 and above is a failure.
    fn request(&self, agent: &Agent) -> Result<(), String> {
        let answer = match &self.body {
            Some(body) => agent.post(&self.url).send(body.as_bytes()),
            None => agent.get(&self.url).call(),
        };
        let mut answer = answer.map_err(|error| error.to_string())?;
        answer.body_mut().read_to_vec().map_err(|error| error.to_string())?;
        let status = answer.status();
        if status.as_u16() < 400 { Ok(()) } else { Err(format!("status {status}")) }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::Arc;

    use super::*;

    /// More than any load here takes.
    const LIMIT: Duration = Duration::from_secs(60);

    /// A server that answers request number `slow` only after `pause`, and every `bad`-th with status 503.
    fn server(slow: u64, pause: Duration, bad: u64) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let url = format!("http://{}/", listener.local_addr().expect("it is bound"));
        let seen = Arc::new(AtomicU64::new(0));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = Arc::clone(&seen);
                std::thread::spawn(move || serve(stream, &seen, slow, pause, bad));
            }
        });
        url
    }

    fn serve(mut stream: TcpStream, seen: &AtomicU64, slow: u64, pause: Duration, bad: u64) {
        let mut lines = BufReader::new(stream.try_clone().expect("a socket can be cloned")).lines();
        while let Some(Ok(line)) = lines.next() {
            if !line.is_empty() {
                continue;
            }
            let number = seen.fetch_add(1, Ordering::SeqCst) + 1;
            if number == slow {
                std::thread::sleep(pause);
            }
            let status = if bad > 0 && number.is_multiple_of(bad) { "503 Busy" } else { "200 OK" };
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok");
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }

    fn load(url: String) -> HttpLoad {
        HttpLoad {
            url,
            rate: 400.0,
            seconds: 0.5,
            warmup_seconds: 0.0,
            connections: 1,
            body: None,
            timeout_seconds: 10.0,
        }
    }

    #[test]
    fn a_redirect_is_an_answer_and_leads_nowhere() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let url = format!("http://{}/", listener.local_addr().expect("it is bound"));
        let requests = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let seen = Arc::clone(&seen);
                std::thread::spawn(move || {
                    let mut lines =
                        BufReader::new(stream.try_clone().expect("a socket can be cloned")).lines();
                    while let Some(Ok(line)) = lines.next() {
                        if line.is_empty() {
                            seen.fetch_add(1, Ordering::SeqCst);
                            let head = "HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n";
                            let _ = stream.write_all(head.as_bytes());
                        }
                    }
                });
            }
        });
        let load = HttpLoad { rate: 20.0, ..load(url) };
        let sample = load.run(None, LIMIT, &Stop::default()).expect("it answers");
        assert_eq!(sample.value("error_rate"), Some(0.0));
        assert_eq!(requests.load(Ordering::SeqCst), 10, "one for each operation");
    }

    #[test]
    fn a_proxy_of_the_shell_is_not_asked() {
        let proxy = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        proxy.set_nonblocking(true).expect("a socket can be told so");
        let address = format!("http://{}", proxy.local_addr().expect("it is bound"));
        // The environment is the process's, so the load runs in one of its own.
        let mut command = std::process::Command::new(std::env::current_exe().expect("this is a program"));
        command.args(["--exact", "adapter::http::tests::a_redirect_is_an_answer_and_leads_nowhere"]);
        for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
            command.env(name, &address);
        }
        let output = command.env_remove("no_proxy").env_remove("NO_PROXY").output().expect("it starts");
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && told.contains("1 passed"), "{told}");
        assert!(proxy.accept().is_err(), "the proxy was asked");
    }

    #[test]
    fn a_pause_of_the_server_is_in_every_latency_that_it_delayed() {
        let pause = Duration::from_millis(200);
        let sample = load(server(10, pause, 0)).run(None, LIMIT, &Stop::default()).expect("it answers");
        // 200 requests in 0.5 s, of which the pause holds up those meant for 0.2 s: two in five are late, and
        // a load that waits for its answers would have recorded one.
        let p90 = sample.value("p90_ns").expect("enough requests");
        assert!(p90 > 20e6, "p90 {p90}");
        assert!(sample.value("max_ns").expect("a maximum") >= 199e6);
        assert_eq!(sample.value("error_rate"), Some(0.0));
        crate::collect::tests::assert_complete(&sample);
    }

    #[test]
    fn the_rate_is_kept_and_failures_are_counted() {
        let mut load = load(server(0, Duration::ZERO, 4));
        load.connections = 4;
        let sample = load.run(None, LIMIT, &Stop::default()).expect("it answers");
        let errors = sample.value("error_rate").expect("a share");
        assert!((errors - 0.25).abs() < 0.01, "{errors}");
        let rate = sample.value("ops_per_s").expect("a rate");
        assert!((200.0..=320.0).contains(&rate), "{rate}");
    }

    #[test]
    fn a_request_that_timed_out_is_among_the_slowest() {
        let mut load = load(server(3, Duration::from_secs(20), 0));
        (load.rate, load.connections, load.timeout_seconds) = (40.0, 4, 1.0);
        let sample = load.run(None, LIMIT, &Stop::default()).expect("it answers");
        let slowest = sample.value("max_ns").expect("a maximum");
        assert!(slowest >= 0.99e9, "the one that failed after a second is missing: {slowest}");
        let errors = sample.value("error_rate").expect("a share");
        let failed = (errors * 20.0).round();
        assert!(failed >= 1.0 && (errors * 20.0 - failed).abs() < 1e-9, "{errors} of 20");
        assert_eq!(sample.operations, Some(20.0 - failed), "what failed is no operation");
    }

    #[test]
    fn windows_show_when_a_server_was_slow() {
        // The pause holds up the requests of the first third; the last ones find the server idle again, and it would
        // take another half of a pause of the machine to make them look like the first.
        let pause = Duration::from_secs(1);
        let load = HttpLoad { rate: 100.0, seconds: 3.0, ..load(server(1, pause, 0)) };
        let sample = load.run(None, LIMIT, &Stop::default()).expect("it answers");
        assert_eq!(sample.windows.len(), 15, "300 requests, 20 a window");
        let window = sample.window.as_ref().expect("they are named");
        assert_eq!((window.metric.as_str(), window.length), ("p50_ns", Duration::from_millis(200)));
        let [first, .., last] = sample.windows.as_slice() else { panic!("{:?}", sample.windows) };
        assert!(*first > 0.85e9 && *last < first / 2.0, "{:?}", sample.windows);
        let longer = load.run(Some(20), LIMIT, &Stop::default()).expect("it answers");
        assert_eq!(longer.windows.len(), 20);
    }

    #[test]
    fn a_body_is_posted() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let url = format!("http://{}/query", listener.local_addr().expect("it is bound"));
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("one connection");
            let mut request = Vec::new();
            while !request.ends_with(b"select 1") {
                let mut byte = [0];
                std::io::Read::read_exact(&mut stream, &mut byte).expect("the whole request");
                request.push(byte[0]);
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").expect("it listens");
            String::from_utf8(request).expect("text")
        });
        let mut load = load(url);
        (load.rate, load.seconds, load.body) = (1.0, 1.0, Some("select 1".to_owned()));
        let sample = load.run(None, LIMIT, &Stop::default()).expect("it answers");
        assert_eq!((sample.operations, sample.value("error_rate")), (Some(1.0), Some(0.0)));
        assert!(server.join().expect("it saw a request").starts_with("POST /query HTTP/1.1\r\n"));
    }

    #[test]
    fn nobody_there_is_a_crash_with_the_reason() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let url = format!("http://{}/", listener.local_addr().expect("it is bound"));
        drop(listener);
        let mut load = load(url);
        load.seconds = 0.02;
        let error = load.run(None, LIMIT, &Stop::default()).expect_err("nobody listens");
        assert!(error.to_string().starts_with("no request was answered: "), "{error}");
    }

    #[test]
    fn a_stop_ends_the_load() {
        let stop = Stop::default();
        stop.set();
        let load = load(server(0, Duration::ZERO, 0));
        assert_eq!(load.run(None, LIMIT, &stop), Err(ArmError::Stopped));
    }

    #[test]
    fn a_server_that_hangs_has_failed_after_the_limit_in_the_warm_up_too() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let url = format!("http://{}/", listener.local_addr().expect("it is bound"));
        // Connections wait in the queue of the socket: each is there, and none gets an answer.
        let (limit, stop) = (Duration::from_secs(1), Stop::default());
        let load = HttpLoad { rate: 20.0, connections: 2, timeout_seconds: 2.0, ..load(url) };
        let failed = ArmError::TimedOut { after: limit };
        assert_eq!(load.run(None, limit, &stop), Err(failed.clone()));
        assert_eq!(load.warm_up(Duration::from_millis(500), limit, &stop), Err(failed));
        drop(listener);
    }

    #[test]
    fn a_load_that_is_made_longer_stays_within_its_limit() {
        let load = HttpLoad { rate: 20.0, ..load("http://127.0.0.1:1/".to_owned()) };
        let length = |windows, limit| load.seconds_for(windows, Duration::from_secs(limit));
        assert_eq!((length(None, 600), length(Some(32), 600)), (0.5, 32.0));
        assert_eq!(length(Some(32), 20), 18.0, "all 32 windows would take 32 s");
    }

    #[test]
    fn numbers_are_checked() {
        let good = load("http://127.0.0.1:1/".to_owned());
        assert_eq!(good.check(), Ok(()));
        assert!(HttpLoad { url: "https://x/".to_owned(), ..good.clone() }.check().is_err());
        assert!(HttpLoad { rate: 0.0, ..good.clone() }.check().is_err());
        assert!(HttpLoad { warmup_seconds: -1.0, ..good }.check().is_err());
    }
}
