//! Shell patterns of one name: `*`, `?` and `[...]`, as `fnmatch(3)` and `glob(3)` read them.
//!
//! Nothing of a pattern means a slash, so that paths are held against patterns component by component. Braces are no
//! part of a pattern: where a program takes them apart, whoever reads its lines does so before ([`in_braces`]).

/// What a pattern is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'p> {
    /// This character.
    Is(char),
    /// Any one.
    One,
    /// Any number of any.
    Many,
    /// One of some.
    Of(Set<'p>),
}

impl Piece<'_> {
    /// Whether all that another piece of one character means is meant by this one.
    fn holds(self, other: Self) -> bool {
        match (self, other) {
            (_, Self::Many) => false,
            (Self::One | Self::Many, _) => true,
            (Self::Of(set), Self::Is(c)) => set.has(c),
            (one, other) => one == other,
        }
    }

    /// Whether one character can be of both, as far as is told: of two sets that is not looked at.
    pub(super) fn meets(self, other: Self) -> bool {
        match (self, other) {
            (Self::Is(one), Self::Is(other)) => one == other,
            (Self::Of(set), Self::Is(c)) | (Self::Is(c), Self::Of(set)) => set.has(c),
            _ => true,
        }
    }
}

/// The characters in brackets: `[0-7]`, `[!a-c]`, `[[:digit:]]`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Set<'p> {
    body: &'p str,
    /// It means all others.
    is_contrary: bool,
}

impl<'p> Set<'p> {
    /// The set that begins behind a bracket, and how long it is with the bracket that closes it.
    fn of(text: &'p str) -> Option<(Self, usize)> {
        let is_contrary = text.starts_with(['!', '^']);
        let body = &text[usize::from(is_contrary)..];
        // The first one closes nothing: `[]a]` is one of two.
        let mut at = usize::from(body.starts_with(']'));
        while !body[at..].starts_with(']') {
            at += class(&body[at..]).map(|(_, len)| len).or_else(|| Some(character(&body[at..])?.1))?;
        }
        Some((Self { body: &body[..at], is_contrary }, usize::from(is_contrary) + at + 1))
    }

    fn has(self, c: char) -> bool {
        let (mut rest, mut is_in) = (self.body, false);
        while !rest.is_empty() {
            if let Some((name, len)) = class(rest) {
                is_in |= is_of_class(name, c);
                rest = &rest[len..];
                continue;
            }
            let Some((low, len)) = character(rest) else { break };
            rest = &rest[len..];
            let high = rest.strip_prefix('-').and_then(character);
            is_in |= high.map_or(low == c, |(high, _)| (low..=high).contains(&c));
            rest = high.map_or(rest, |(_, len)| &rest[1 + len..]);
        }
        is_in != self.is_contrary
    }

    /// All that are in it, of the characters that the kernel names things with; `None` where they are not told one by
    /// one, or where one of them would be more than itself in a pattern.
    fn each(self) -> Option<Vec<char>> {
        let is_told = !self.is_contrary && self.body.is_ascii();
        let all: Vec<char> = ('!'..='~').filter(|c| is_told && *c != '/' && self.has(*c)).collect();
        (is_told && !all.iter().any(|c| "*?[".contains(*c))).then_some(all)
    }
}

/// The name of a class that a text begins with, and how long that is: `[:digit:]`.
fn class(text: &str) -> Option<(&str, usize)> {
    let name = text.strip_prefix("[:")?;
    let end = name.find(|c: char| !c.is_ascii_lowercase())?;
    name[end..].starts_with(":]").then(|| (&name[..end], "[:".len() + end + ":]".len()))
}

/// The first character of what is in brackets, and how long it is with the backslash before it.
fn character(text: &str) -> Option<(char, usize)> {
    let escaped = text.strip_prefix('\\').and_then(|rest| rest.chars().next());
    let c = escaped.or_else(|| text.chars().next())?;
    Some((c, usize::from(escaped.is_some()) + c.len_utf8()))
}

/// A class that nobody knows has no characters.
fn is_of_class(name: &str, c: char) -> bool {
    match name {
        "digit" => c.is_ascii_digit(),
        "xdigit" => c.is_ascii_hexdigit(),
        "alpha" => c.is_alphabetic(),
        "alnum" => c.is_alphanumeric(),
        "lower" => c.is_lowercase(),
        "upper" => c.is_uppercase(),
        "punct" => c.is_ascii_punctuation(),
        "space" => c.is_whitespace(),
        "print" | "graph" => !c.is_control() && !c.is_whitespace(),
        _ => false,
    }
}

/// A pattern that is read piece by piece.
pub(super) struct Glob<'p> {
    text: &'p str,
    /// What stands from there on is plain, but for `*` and `?`: nothing closes the bracket there.
    open: usize,
    /// No piece of it is anything but a character.
    is_plain: bool,
}

impl<'p> Glob<'p> {
    pub(super) fn of(text: &'p str) -> Self {
        let mut glob = Self { text, open: text.len(), is_plain: false };
        let mut at = text.find('[').unwrap_or(text.len());
        // To look once more behind each bracket that is open would take a time that grows with their number.
        while let Some(found) = text[at..].find('[') {
            at += found + 1;
            match Set::of(&text[at..]) {
                Some((_, len)) => at += len,
                None => {
                    glob.open = at - 1;
                    break;
                }
            }
        }
        glob
    }

    fn plain(text: &'p str) -> Self {
        Self { text, open: 0, is_plain: true }
    }

    /// The piece that begins there, and where the next one does.
    fn piece(&self, at: usize) -> Option<(Piece<'p>, usize)> {
        let c = self.text[at..].chars().next()?;
        let behind = at + c.len_utf8();
        let one = |piece| Some((piece, behind));
        match c {
            '*' if !self.is_plain => one(Piece::Many),
            '?' if !self.is_plain => one(Piece::One),
            '[' if at < self.open => match Set::of(&self.text[behind..]) {
                Some((set, len)) => Some((Piece::Of(set), behind + len)),
                None => one(Piece::Is(c)),
            },
            _ => one(Piece::Is(c)),
        }
    }

    pub(super) fn pieces(&self) -> Vec<Piece<'p>> {
        let mut at = 0;
        std::iter::from_fn(|| {
            let (piece, behind) = self.piece(at)?;
            at = behind;
            Some(piece)
        })
        .collect()
    }

    /// Whether it means all that another one means, as far as their pieces tell. No star but the last is gone back to:
    /// what fits behind an earlier one further on fits behind the last one as well.
    fn holds(&self, other: &Self) -> bool {
        let (mut at, mut seen) = (0, 0);
        // Where to go on when the other one does not fit: behind the last star, one piece further.
        let mut retry: Option<(usize, usize)> = None;
        while let Some((theirs, further)) = other.piece(seen) {
            match self.piece(at) {
                Some((Piece::Many, behind)) => {
                    retry = Some((behind, seen));
                    at = behind;
                }
                Some((ours, behind)) if ours.holds(theirs) => (at, seen) = (behind, further),
                _ => {
                    let next = retry.and_then(|(star, from)| Some((star, other.piece(from)?.1)));
                    let Some((star, from)) = next else { return false };
                    retry = next;
                    (at, seen) = (star, from);
                }
            }
        }
        self.text[at..].bytes().all(|byte| byte == b'*')
    }
}

/// Whether `text` matches a shell pattern of `*` (any run of characters), `?` (any one) and brackets (one of some:
/// `[0-7]`, `[!a]`). A bracket that nothing closes is a character.
#[must_use]
pub fn matches(pattern: &str, text: &str) -> bool {
    Glob::of(pattern).holds(&Glob::plain(text))
}

/// Whether a shell pattern means all that another one means, as far as a comparison of the two tells.
#[must_use]
pub fn includes(wide: &str, narrow: &str) -> bool {
    wide == narrow || Glob::of(wide).holds(&Glob::of(narrow))
}

/// Patterns that one with brackets comes to at most, where others are to have it without.
const PATTERNS_MAX: usize = 128;

/// Patterns without brackets which mean together what one with them means: `cpu[01]` is `cpu0` and `cpu1`. `None` where
/// there would be more than a few, or none says it.
#[must_use]
pub fn without_brackets(pattern: &str) -> Option<Vec<String>> {
    let mut all = vec![String::new()];
    for piece in Glob::of(pattern).pieces() {
        let each = match piece {
            Piece::Is(c) => vec![c],
            Piece::One => vec!['?'],
            Piece::Many => vec!['*'],
            Piece::Of(set) => set.each()?,
        };
        if all.len() * each.len() > PATTERNS_MAX {
            return None;
        }
        let with = |before: &String| each.iter().map(|c| format!("{before}{c}")).collect::<Vec<_>>();
        all = all.iter().flat_map(with).collect();
    }
    Some(all)
}

/// Why a pattern means no name at all, where a slip of the pen is what it takes for that.
#[must_use]
pub fn in_vain(pattern: &str) -> Option<&'static str> {
    if pattern.contains(['{', '}']) {
        return Some("braces choose nothing here: write a case for each, or brackets ([01])");
    }
    let glob = Glob::of(pattern);
    if glob.open < pattern.len() {
        return Some("nothing closes its bracket");
    }
    let is_empty = |piece: &Piece<'_>| match piece {
        Piece::Of(set) => set.each().is_some_and(|all| all.is_empty()),
        _ => false,
    };
    glob.pieces().iter().any(is_empty).then_some("nothing is in its brackets ([0-9] goes upwards)")
}

/// Words that braces in one are taken apart into at most: nobody writes more, and each pair may double their number.
const WORDS_MAX: usize = 1024;
/// The longest path of the kernel, in bytes.
const PATH_MAX: usize = 4096;

/// `a{b,c}` as `glob(3)` has it where a program asks for that: `ab` and `ac`, in this order. Unlike in a shell, `{b}`
/// is `b`, and `{1..3}` no numbers.
#[must_use]
pub fn in_braces(word: &str) -> Vec<String> {
    let (mut words, mut open) = (Vec::new(), vec![word.to_owned()]);
    if word.len() > PATH_MAX {
        return open;
    }
    let mut looks = 0;
    while let Some(word) = open.pop() {
        looks += 1;
        let is_few = looks <= WORDS_MAX && open.len() + words.len() <= WORDS_MAX;
        match first_braces(&word).filter(|_| is_few) {
            Some((before, each, after)) => {
                open.extend(each.iter().rev().map(|one| [before, one, after].concat()));
            }
            None => words.push(word),
        }
    }
    words
}

/// The first braces of a word that something closes: what stands before them, what they let choose from, and what
/// stands behind them.
fn first_braces(word: &str) -> Option<(&str, Vec<&str>, &str)> {
    let (before, inner) = word.split_once('{')?;
    let (mut depth, mut begin, mut each) = (0, 0, Vec::new());
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                each.push(&inner[begin..at]);
                begin = at + 1;
                if c == '}' {
                    return Some((before, each, &inner[begin..]));
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shell_patterns() {
        for (pattern, text, fits) in [
            ("nvme*", "nvme0n1", true),
            ("nvme*", "sda", false),
            ("*n1", "nvme0n1", true),
            ("sd?", "sda", true),
            ("sd?", "sdaa", false),
            ("*", "", true),
            ("", "", true),
            ("a*b*c", "aXbXbc", true),
            ("a*b*c", "aXbXb", false),
            ("?", "é", true),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }

    /// Each as `fnmatch(3)` of glibc answers.
    #[test]
    fn brackets_are_one_character_of_some() {
        for (pattern, text, fits) in [
            ("nvme[01]n1", "nvme1n1", true),
            ("nvme[01]n1", "nvme2n1", false),
            ("nvme[01]n1", "nvme[01]n1", false),
            ("cpu[0-7]", "cpu7", true),
            ("cpu[0-7]", "cpu8", false),
            ("cpu[0-7]", "cpu", false),
            ("cpu[0-9]*", "cpu12", true),
            ("cpu[0-9]*", "cpufreq", false),
            ("cpu[[:digit:]]", "cpu3", true),
            ("cpu[[:digit:]x]", "cpux", true),
            ("cpu[[:digit:]]", "cpu:", false),
            ("cpu[![:digit:]]", "cpux", true),
            ("[!a-c]", "d", true),
            ("[^a-c]", "b", false),
            ("[!a]", "", false),
            ("[]a]", "]", true),
            ("[!]a]", "]", false),
            ("[a-]", "-", true),
            ("[-a]", "-", true),
            ("[c-a]", "b", false),
            ("[\\]]", "]", true),
            ("[*?]", "*", true),
            ("[*?]", "x", false),
            ("[[]", "[", true),
            ("[a", "[a", true),
            ("a[]", "a[]", true),
            ("*[ab]*[cd]", "xaxbxc", true),
            ("[à-é]", "á", true),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn brackets_that_say_each_character_are_a_pattern_for_each() {
        for (pattern, each) in [
            ("cpu[0-3]", Some(&["cpu0", "cpu1", "cpu2", "cpu3"][..])),
            ("nvme[01]n[12]", Some(&["nvme0n1", "nvme0n2", "nvme1n1", "nvme1n2"])),
            ("sd[b-]*", Some(&["sd-*", "sdb*"])),
            ("sd?", Some(&["sd?"])),
            ("sd[b-a]", Some(&[])),
            ("sd[a", Some(&["sd[a"])),
            ("sd[!a]", None),
            ("sd[*a]", None),
            ("sd[à-é]", None),
            ("sd[a-z][a-z]", None),
        ] {
            let found = without_brackets(pattern);
            let found: Option<Vec<&str>> = found.as_ref().map(|all| all.iter().map(String::as_str).collect());
            assert_eq!(found.as_deref(), each, "{pattern}");
        }
        assert_eq!(without_brackets("cpu[[:digit:]]").map(|all| all.len()), Some(10));
    }

    #[test]
    fn neither_stars_nor_brackets_take_a_time_that_doubles_with_each() {
        let text = "ab".repeat(5000);
        assert!(!matches(&("*[ab]".repeat(2000) + "c"), &text));
        assert!(matches(&("*[ab]".repeat(2000) + "*b"), &text));
        let open = "[".repeat(200_000);
        assert!(matches(&open, &open) && !matches(&open, &text));
    }

    #[test]
    fn braces_let_choose() {
        for (word, words) in [
            ("/sys/block/nvme{0,1}n1/x", &["/sys/block/nvme0n1/x", "/sys/block/nvme1n1/x"][..]),
            ("a{b,c{d,e}}{f,g}", &["abf", "abg", "acdf", "acdg", "acef", "aceg"]),
            ("a{b}", &["ab"]),
            ("a{,b}", &["a", "ab"]),
            ("a{1..3}", &["a1..3"]),
            ("a{b,c", &["a{b,c"]),
            ("a}b{", &["a}b{"]),
            ("", &[""]),
        ] {
            assert_eq!(in_braces(word), words, "{word}");
        }
        assert!(in_braces(&"{a,b}".repeat(60)).len() <= 2 * WORDS_MAX);
        assert_eq!(in_braces(&"{a,b}".repeat(100_000)).len(), 1);
    }

    /// A piece of a pattern, as a test makes one.
    #[derive(Clone, Debug)]
    enum Made {
        Is(char),
        One,
        Many,
        Of { is_contrary: bool, has_bracket: bool, ranges: Vec<(char, char)>, has_dash: bool },
    }

    impl Made {
        fn written(&self) -> String {
            match self {
                Self::Is(c) => c.to_string(),
                Self::One => "?".to_owned(),
                Self::Many => "*".to_owned(),
                Self::Of { is_contrary, has_bracket, ranges, has_dash } => {
                    let each = ranges.iter().map(|(low, high)| match low == high {
                        true => low.to_string(),
                        false => format!("{low}-{high}"),
                    });
                    let sign = |is_there: bool, sign| if is_there { sign } else { "" };
                    let (not, first, last) =
                        (sign(*is_contrary, "!"), sign(*has_bracket, "]"), sign(*has_dash, "-"));
                    format!("[{not}{first}{}{last}]", each.collect::<String>())
                }
            }
        }

        fn is(&self, c: char) -> bool {
            match self {
                Self::Is(own) => *own == c,
                Self::One | Self::Many => true,
                Self::Of { is_contrary, has_bracket, ranges, has_dash } => {
                    let mut each = ranges.iter();
                    let is_in = each.any(|(low, high)| *low <= c && c <= *high)
                        || *has_bracket && c == ']'
                        || *has_dash && c == '-';
                    is_in != *is_contrary
                }
            }
        }
    }

    /// Tries each length of each star.
    fn by_trying(pattern: &[Made], text: &[char]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((Made::Many, behind)) => (0..=text.len()).any(|from| by_trying(behind, &text[from..])),
            Some((one, behind)) => {
                text.split_first().is_some_and(|(c, rest)| one.is(*c) && by_trying(behind, rest))
            }
        }
    }

    fn made() -> impl Strategy<Value = Made> {
        let letter = || prop::sample::select(vec!['a', 'b', 'c', 'd', 'é']);
        let set =
            (any::<bool>(), any::<bool>(), prop::collection::vec((letter(), letter()), 1..3), any::<bool>());
        let set = set.prop_map(|(is_contrary, has_bracket, ranges, has_dash)| Made::Of {
            is_contrary,
            has_bracket,
            ranges,
            has_dash,
        });
        let plain = prop::sample::select(vec!['a', 'b', 'c', ']', '-', '!', 'é']);
        prop_oneof![plain.prop_map(Made::Is), Just(Made::One), Just(Made::Many), set]
    }

    proptest! {
        #[test]
        fn what_matches_is_what_one_finds_by_trying_all_ways(
            pattern in prop::collection::vec(made(), 0..7), text in "[abcdé!\\]-]{0,8}",
        ) {
            let written: String = pattern.iter().map(Made::written).collect();
            let letters: Vec<char> = text.chars().collect();
            prop_assert_eq!(matches(&written, &text), by_trying(&pattern, &letters), "{} {}", written, text);
        }

        /// Else a plan would take one case of a profile for another.
        #[test]
        fn what_a_pattern_means_is_meant_by_one_that_includes_it(
            wide in "[ab*?!\\[\\]-]{0,7}", narrow in "[ab*?!\\[\\]-]{0,7}", text in "[ab!\\[\\]-]{0,5}",
        ) {
            if includes(&wide, &narrow) && matches(&narrow, &text) {
                prop_assert!(matches(&wide, &text), "{} {} {}", wide, narrow, text);
            }
        }

        #[test]
        fn a_star_on_both_sides_finds_every_part(
            text in "[a-c]{0,12}", from in 0_usize..12, len in 0_usize..12,
        ) {
            let from = from.min(text.len());
            let to = (from + len).min(text.len());
            let pattern = format!("*{}*", &text[from..to]);
            prop_assert!(matches(&pattern, &text));
        }

        #[test]
        fn odd_text_is_passed_over(pattern in "[\\PC\\[\\]{},\\\\:^!-]{0,60}", text in "\\PC{0,60}") {
            let _ = (matches(&pattern, &text), includes(&pattern, &text), in_braces(&pattern));
        }
    }
}
