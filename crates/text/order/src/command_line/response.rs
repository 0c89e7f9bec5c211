//! Response files: `@FILE` stands for the words in a file.

/// Files inside of files; more is a circle.
const DEPTH_MAX: usize = 16;
/// Words of a command line; the largest links of browsers have a hundredth of it.
const WORDS_MAX: usize = 4 << 20;

/// A command line with the words of its response files in their places. `read` gives the text of a file; a file that
/// cannot be read stays the word that it is, as compilers have it.
pub fn expand(words: impl IntoIterator<Item = String>, read: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let mut all = Vec::new();
    for word in words {
        add(word, read, 0, &mut all);
    }
    all
}

fn add(word: String, read: &dyn Fn(&str) -> Option<String>, depth: usize, all: &mut Vec<String>) {
    let text = word.strip_prefix('@').filter(|_| depth < DEPTH_MAX && all.len() < WORDS_MAX).and_then(read);
    match text {
        None => all.push(word),
        Some(text) => split(&text).into_iter().for_each(|word| add(word, read, depth + 1, all)),
    }
}

/// Words as GNU tools split them: at white space, with single and double quotes, and backslashes before anything.
#[must_use]
pub fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            // Within single quotes too: so does libiberty, unlike a shell.
            ('\\', _) => word.get_or_insert_default().extend(letters.next()),
            (_, Some(open)) if letter == open => quote = None,
            (_, Some(_)) => word.get_or_insert_default().push(letter),
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (_, None) if letter.is_ascii_whitespace() => words.extend(word.take()),
            (_, None) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_gnu_tools_do() {
        assert_eq!(split("a  b\n\"c d\" 'e \"f' g\\ h \"\"\t"), ["a", "b", "c d", "e \"f", "g h", ""]);
        assert_eq!(split("'a\\'b' c\\"), ["a'b", "c"]);
        assert_eq!(split(" \n"), [""; 0]);
    }

    #[test]
    fn files_in_files_stand_in_their_places_and_circles_end() {
        let read = |name: &str| match name {
            "a" => Some("1 @b 4".to_owned()),
            "b" => Some("2 3".to_owned()),
            "circle" => Some("x @circle".to_owned()),
            _ => None,
        };
        let words = |line: &str| expand(split(line), &read);
        assert_eq!(words("0 @a @none 5"), ["0", "1", "2", "3", "4", "@none", "5"]);
        assert_eq!(words("@circle").len(), DEPTH_MAX + 1);
    }
}
