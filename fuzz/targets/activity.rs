//! Counters of the kernel: `/proc/interrupts`, `/proc/softirqs`, `/proc/stat`, `/proc/loadavg`, `/proc/pressure`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_host::activity::{PerCpu, cpu_ticks, cpu_ticks_of, load_1m, runnable, waited_avg10, waited_us};

fuzz_target!(|text: &str| {
    let read = PerCpu::parse(text);
    for &cpu in read.cpus() {
        assert_eq!(read.growth(&read, cpu).count(), 0, "nothing grows in no time");
        let from_nothing = PerCpu::default();
        for (name, count) in read.growth(&from_nothing, cpu) {
            assert_eq!(read.count(name, cpu), Some(count));
        }
        let _ = cpu_ticks_of(text, cpu);
    }
    if let Some(ticks) = cpu_ticks(text) {
        assert!(ticks.idle <= ticks.total && ticks.steal <= ticks.total);
    }
    let _ = (runnable(text), load_1m(text), waited_us(text), waited_avg10(text));
});
