//! Redis, which has one heap and no shared segment: on which nodes it comes to lie.

use super::{OnNodes, Running, ensure_even_heap, seen, share, start, start_anywhere, told, with};
use crate::check::{Outcome, Report};
use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

const REDIS: &str = "/bin/redis-server";
/// Values of 32 KiB.
const VALUES: usize = 512;
const VALUE_BYTES: usize = 32 << 10;

pub(super) fn run_all(report: &mut Report) {
    report.check("redis.plain", || with(REDIS, || one(&[], Home::Node0)));
    report.check("redis.run.interleave", || {
        with(REDIS, || one(&["--numa", "heap=interleave:0-1"], Home::Both))
    });
    // What it shares is to be spread. It shares nothing, and its heap stays.
    report.check("redis.run.shared", || with(REDIS, || one(&["--numa", "interleave"], Home::Node0)));
    report.check("redis.run.each-node", || with(REDIS, each_node));
}

/// Where a heap is to be.
#[derive(Clone, Copy)]
enum Home {
    Node0,
    Both,
}

/// One instance, with `planish run` and these options where there are any.
fn one(options: &[&str], home: Home) -> Result<Outcome> {
    let launcher: Vec<&str> = match options {
        [] => Vec::new(),
        options => [&["/bin/planish", "run"], options, &["--"]].concat(),
    };
    let (mut server, sockets) = started(&launcher, &["/tmp/redis.sock"])?;
    let heap = filled(&mut server, sockets[0]);
    server.end(Signal::TERM)?;
    let heap = heap?;
    match home {
        Home::Node0 => ensure!(share(&heap, 0) > 0.97, "heap {}", told(&heap)),
        Home::Both => ensure_even_heap(&heap)?,
    }
    Ok(Outcome::Ok(format!("heap {}", told(&heap))))
}

/// An instance a node, each with its heap there.
fn each_node() -> Result<Outcome> {
    let launcher = ["/bin/planish", "run", "--each-node", "--"];
    let (mut server, sockets) = started(&launcher, &["/tmp/redis-0.sock", "/tmp/redis-1.sock"])?;
    let heaps: Result<Vec<OnNodes>> = sockets.iter().map(|socket| filled(&mut server, socket)).collect();
    server.end(Signal::TERM)?;
    let heaps = heaps?;
    for (node, heap) in (0..).zip(&heaps) {
        ensure!(share(heap, node) > 0.97, "instance of node {node}: heap {}", told(heap));
    }
    Ok(Outcome::Ok(heaps.iter().map(told).collect::<Vec<_>>().join("; ")))
}

/// Starts what listens on these sockets: of several, each has the number of its node in its name.
fn started<'s>(launcher: &[&str], sockets: &'s [&'s str]) -> Result<(Running, &'s [&'s str])> {
    sockets.iter().for_each(|socket| drop(fs::remove_file(socket)));
    let socket = if sockets.len() > 1 { "/tmp/redis-{node}.sock" } else { sockets[0] };
    let options = ["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket", socket];
    let words = [launcher, &[REDIS], &options].concat();
    // An instance a node needs the CPUs of all nodes.
    let server = if sockets.len() > 1 { start_anywhere(&words)? } else { start(&words)? };
    Ok((server, sockets))
}

/// Fills an instance, and asks the kernel where its heap lies.
fn filled(server: &mut Running, socket: &str) -> Result<OnNodes> {
    let stream = server.wait_for("a socket that answers", || UnixStream::connect(socket).ok())?;
    let mut talk = BufReader::new(stream);
    let value = "v".repeat(VALUE_BYTES);
    for key in 0..VALUES {
        let key = format!("key{key}");
        let set = format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n${VALUE_BYTES}\r\n{value}\r\n", key.len());
        talk.get_mut().write_all(set.as_bytes()).context("write to Redis")?;
        let mut answer = String::new();
        talk.read_line(&mut answer).context("read from Redis")?;
        ensure!(answer == "+OK\r\n", "it answers {answer}");
    }
    talk.get_mut().write_all(b"*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n").context("write to Redis")?;
    let mut length = String::new();
    talk.read_line(&mut length).context("read from Redis")?;
    let length: usize = length.trim().trim_start_matches('$').parse().context("the length of INFO")?;
    let mut text = vec![0; length];
    talk.read_exact(&mut text).context("read INFO")?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let pid = text.lines().find_map(|line| line.strip_prefix("process_id:")).context("no process_id")?;
    Ok(seen(pid.trim().parse()?)?.private)
}
