//! Arguments of the kernel command line, on any number of lines.

use super::collect::Collector;
use super::grub;

pub(super) fn read(text: &str, collector: &mut Collector<'_>) {
    if text.lines().any(grub::is_one) {
        return grub::read(text, collector);
    }
    // The page size before `hugepages=` may stand on the line above.
    let joined: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    collector.arguments(1, &joined.join(" "));
}
