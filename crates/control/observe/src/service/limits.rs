//! `/proc/PID/limits`: the resource limits that keep a server from working, or from keeping its memory.

use planish_model::ServiceLimit;

/// Names of the kernel, and those that systemd and shells have.
const KNOWN: [(&str, &str); 5] = [
    ("Max open files", "nofile"),
    ("Max locked memory", "memlock"),
    ("Max processes", "nproc"),
    ("Max core file size", "core"),
    ("Max stack size", "stack"),
];

/// The limits of a table. A line that is not understood is passed over.
pub(super) fn of(text: &str) -> Vec<ServiceLimit> {
    KNOWN
        .iter()
        .filter_map(|(kernel, name)| {
            let rest = text.lines().find_map(|line| line.strip_prefix(kernel))?;
            let mut words = rest.split_whitespace();
            let mut limit = || match words.next()? {
                "unlimited" => Some(None),
                number => number.parse::<u64>().ok().map(Some),
            };
            Some(ServiceLimit { name: (*name).to_owned(), soft: limit()?, hard: limit()? })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_numbers_or_none() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max open files            1024                 524288               files     \n\
                    Max locked memory         unlimited            unlimited            bytes     \n\
                    Max processes             odd                  1                    processes \n";
        let found = of(text);
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[0].name.as_str(), found[0].soft, found[0].hard),
            ("nofile", Some(1024), Some(524_288))
        );
        assert_eq!((found[1].name.as_str(), found[1].soft), ("memlock", None));
    }
}
