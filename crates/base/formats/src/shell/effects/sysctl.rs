//! What a command `sysctl` sets.

use super::{Finder, What};

impl Finder<'_> {
    /// `sysctl` as procps and busybox have it (`sysctl(8)`): options with `p` load files, and of words those with a
    /// sign set something.
    pub(super) fn sysctl(&mut self, words: &[String]) {
        let is_behind = |at: usize| at > 0 && ["-r", "--pattern"].contains(&words[at - 1].as_str());
        let own = words.iter().enumerate().filter(|(at, _)| !is_behind(*at)).map(|(_, word)| word);
        let (options, names): (Vec<&String>, Vec<&String>) =
            own.partition(|word| word.starts_with('-') && word.len() > 1);
        let has = |name: &str| options.iter().any(|option| option.as_str() == name);
        if ["--dry-run", "--help", "-h", "--version", "-V"].into_iter().any(has) {
            return;
        }
        let is_short = |option: &&&String| !option.starts_with("--");
        let of_short =
            |letter: char| options.iter().filter(is_short).find_map(|option| option.split_once(letter));
        // Of all lines only those that a pattern fits.
        let is_some = of_short('r').is_some() || options.iter().any(|option| option.starts_with("--pattern"));
        let of_long = options.iter().find_map(|option| option.strip_prefix("--load"));
        let by = of_short('p').or_else(|| of_short('f')).map(|(_, file)| file);
        let by = by.or(of_long.map(|file| file.trim_start_matches('=')));
        let by = by.or_else(|| has("--system").then_some(""));
        if let Some(file) = by {
            let mut files: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            files.extend((!file.is_empty()).then_some(file));
            if files.is_empty() || has("--system") {
                files = vec!["/etc/sysctl.conf"];
            }
            // In another root are other folders.
            if has("--system") && self.root.is_empty() {
                self.done(What::LoadAll, "", !is_some);
            }
            for file in files {
                self.is_open |= file.starts_with('*') || file == "-" || file == "/dev/stdin";
                self.done(What::Load(format!("{}{file}", self.root)), "", !is_some);
            }
            return;
        }
        for name in names {
            match name.split_once('=') {
                Some((key, _)) => {
                    self.is_open |= key.starts_with('*');
                    self.done(What::Key(key.trim().to_owned()), name, true);
                }
                // `sysctl -w "$SETTING"`.
                None if name.starts_with('*') => self.is_open = true,
                None => self.reads.push(name.clone()),
            }
        }
    }
}
