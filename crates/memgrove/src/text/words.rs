//! How a text divides into words, and which of them a question is about.

/// Words that say nothing about what is looked for.
const STOP_WORDS: &str = " a about an and any are as at be been by can did do does for from get had has have \
 he her him his how i in is it its know many me much my of on or our she should tell that the their them there \
 they this to us was we were what when where which who whom whose why will with would you your ";

/// Returns the words of a query, each once, without stop words unless there are no others.
pub fn asked(query: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut plain = Vec::new();
    each_raw_word(query, |raw, word| {
        if !words.iter().any(|known| known == word) {
            words.push(word.to_owned());
            plain.push(is_plain(raw));
        }
    });
    if plain.iter().all(|plain| *plain) {
        return words;
    }
    let mut plain = plain.into_iter();
    words.retain(|_| !plain.next().unwrap_or(false));
    words
}

/// Counts how many of the words a text has.
pub fn overlap(words: &[String], text: &str) -> usize {
    let mut met: Vec<&str> = Vec::new();
    each_word(text, |word| {
        if let Some(known) = words.iter().find(|known| *known == word)
            && !met.contains(&known.as_str())
        {
            met.push(known);
        }
    });
    met.len()
}

/// Hands over the stem of every word.
pub fn each_word(text: &str, mut visit: impl FnMut(&str)) {
    each_raw_word(text, |_, word| visit(word));
}

/// Calls back with every word in lower case, and with its stem. Scripts without spaces give overlapping
/// pairs of characters.
pub fn each_raw_word(text: &str, mut visit: impl FnMut(&str, &str)) {
    let lower = text.to_lowercase();
    for run in lower.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()) {
        if run.is_ascii() {
            visit(run, stem(run));
            continue;
        }
        let mut rest = run;
        while let Some(first) = rest.chars().next() {
            let joined = is_joined(first);
            let end = rest.find(|c| is_joined(c) != joined).unwrap_or(rest.len());
            let part = &rest[..end];
            rest = &rest[end..];
            if !joined {
                visit(part, stem(part));
                continue;
            }
            let starts: Vec<usize> = part.char_indices().map(|(at, _)| at).chain([part.len()]).collect();
            if starts.len() == 2 {
                visit(part, part);
            }
            for pair in starts.windows(3) {
                visit(&part[pair[0]..pair[2]], &part[pair[0]..pair[2]]);
            }
        }
    }
}

/// Whether a lower-case word says nothing about what a text is about.
pub fn is_plain(raw: &str) -> bool {
    raw.len() < 8 && STOP_WORDS.split_ascii_whitespace().any(|plain| plain == raw)
}

fn is_joined(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Strips English endings from a word.
fn stem(word: &str) -> &str {
    const ENDINGS: [(&str, usize); 8] =
        [("ings", 3), ("ing", 3), ("edly", 4), ("ies", 3), ("ed", 3), ("es", 3), ("ly", 4), ("s", 3)];
    if !word.is_ascii() || word.ends_with("ss") {
        return word;
    }
    for (ending, least) in ENDINGS {
        if let Some(stem) = word.strip_suffix(ending)
            && stem.len() >= least
        {
            return stem.strip_suffix('e').filter(|stem| stem.len() >= least).unwrap_or(stem);
        }
    }
    word.strip_suffix('e').filter(|stem| stem.len() >= 3).unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each_word(text, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn words_are_reduced_to_stems() {
        assert_eq!(words("Likes liking liked like"), ["lik", "lik", "lik", "lik"]);
        assert_eq!(words("user_preferences, TypeScript-5"), ["user", "preferenc", "typescript", "5"]);
        assert_eq!(words("class"), ["class"]);
        assert_eq!(words("東京タワー"), ["東京", "京タ", "タワ", "ワー"]);
        assert_eq!(words("茶"), ["茶"]);
    }

    #[test]
    fn questions_are_reduced_to_what_they_ask_for() {
        assert_eq!(asked("What does Alice like about the tea?"), ["alic", "lik", "tea"]);
        assert_eq!(asked("who is it"), ["who", "is", "it"]);
    }
}
