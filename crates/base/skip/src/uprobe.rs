//! A uprobe for tests that ask what becomes of a program with one.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::skip;

/// Arms a uprobe (`perf_event_open(2)`, so that it goes with this process) at an offset of a file, for all processes,
/// until its input ends; then it tells how often code ran into it.
const PROBER: &str = r#"
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words)
{
    struct perf_event_attr probe;
    FILE *kind = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
    long cpu, cpus = sysconf(_SC_NPROCESSORS_CONF);
    int files[1024];
    uint64_t all = 0, hits;
    memset(&probe, 0, sizeof probe);
    probe.size = sizeof probe;
    if (count != 3 || cpus > 1024 || !kind || fscanf(kind, "%u", &probe.type) != 1)
        return 2;
    probe.config1 = (uintptr_t)words[1];
    probe.config2 = strtoull(words[2], NULL, 0);
    for (cpu = 0; cpu < cpus; cpu++) {
        files[cpu] = (int)syscall(SYS_perf_event_open, &probe, -1, cpu, -1, 0);
        if (files[cpu] < 0)
            return 2;
    }
    puts("armed");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    for (cpu = 0; cpu < cpus; cpu++)
        if (read(files[cpu], &hits, sizeof hits) == sizeof hits)
            all += hits;
    printf("%llu\n", (unsigned long long)all);
    return 0;
}
"#;

/// A uprobe that is armed until it is asked how often it was hit, or dropped.
pub struct Uprobe {
    offset: u64,
    prober: Child,
    told: BufReader<ChildStdout>,
}

impl Uprobe {
    /// Arms one on the instruction that lies so many bytes behind a symbol of a program, for all who run it, now or
    /// later; `None`, and a word why, where there are no uprobes.
    ///
    /// # Panics
    /// When the program has no such symbol, or the tool that was built beside it does not start.
    #[must_use]
    pub fn arm(test: &str, program: &Path, symbol: &str, beyond: u64) -> Option<Self> {
        let beside = |end: &str| {
            let mut name = OsString::from(program);
            name.push(end);
            name
        };
        let (source, prober) = (beside("-prober.c"), beside("-prober"));
        std::fs::write(&source, PROBER).expect("the program lies in a folder of the test");
        let built = Command::new("cc").arg(&source).arg("-o").arg(&prober).status();
        if !built.is_ok_and(|status| status.success()) {
            skip(test, "cc does not know perf events");
            return None;
        }
        let offset = offset_of(program, symbol) + beyond;
        let mut command = Command::new(prober);
        command.arg(program).arg(offset.to_string());
        let mut prober =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it was just built");
        let (mut told, mut line) = (BufReader::new(prober.stdout.take().expect("a pipe")), String::new());
        told.read_line(&mut line).expect("a pipe");
        if line != "armed\n" {
            let _ = prober.wait();
            skip(test, "no uprobes here");
            return None;
        }
        Some(Self { offset, prober, told })
    }

    /// Where it is in the file, in bytes.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// How often code ran into it; then it is gone.
    ///
    /// # Panics
    /// When the tool that holds it was ended by somebody.
    #[must_use]
    pub fn hits(mut self) -> u64 {
        drop(self.prober.stdin.take());
        let mut told = String::new();
        self.told.read_to_string(&mut told).expect("a pipe");
        told.trim().parse().expect("a number")
    }
}

impl Drop for Uprobe {
    fn drop(&mut self) {
        drop(self.prober.stdin.take());
        let _ = self.prober.wait();
    }
}

/// Where a symbol lies in the file.
fn offset_of(program: &Path, symbol: &str) -> u64 {
    let symbols = Command::new("nm").arg(program).output().expect("nm comes with cc");
    let symbols = String::from_utf8(symbols.stdout).expect("text");
    let line =
        symbols.lines().find(|line| line.split(' ').next_back() == Some(symbol)).expect("it has the symbol");
    let address = u64::from_str_radix(line.split(' ').next().unwrap_or_default(), 16).expect("a number");
    let headers = Command::new("readelf").args(["-lW"]).arg(program).output().expect("it comes with cc");
    let headers = String::from_utf8(headers.stdout).expect("text");
    let number = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).expect("a number");
    let segments = headers.lines().filter(|line| line.trim_start().starts_with("LOAD"));
    let mut segments = segments.map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (number(words[1]), number(words[2]), number(words[4]))
    });
    let (offset, start, _) = segments
        .find(|(_, start, bytes)| (*start..start + bytes).contains(&address))
        .expect("it lies in a segment");
    offset + (address - start)
}
