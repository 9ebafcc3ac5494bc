//! What notes are called.

/// The longest name that is made.
const NAME_CHARS_MAX: usize = 48;

/// A file name for words: lower case, `_` between them; dates and versions keep their marks.
pub fn slug(words: &str) -> String {
    let mut made = String::new();
    for c in words.trim().chars().flat_map(char::to_lowercase) {
        match c {
            c if c.is_alphanumeric() => made.push(c),
            '-' | '.' if made.ends_with(|before: char| before.is_ascii_digit()) => made.push(c),
            '\'' | '’' => {}
            _ if made.is_empty() || made.ends_with('_') => {}
            _ => made.push('_'),
        }
        if made.chars().count() >= NAME_CHARS_MAX {
            break;
        }
    }
    let made = made.trim_end_matches(['_', '-', '.']);
    if made.is_empty() { "notes".to_owned() } else { made.to_owned() }
}

/// A title for a path: its last name, as people write it.
pub fn title_of(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let words = name.split('_').filter(|word| !word.is_empty());
    let capital = |word: &str| {
        let mut chars = word.chars();
        let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
        first + chars.as_str()
    };
    words.map(capital).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_words() {
        let check = |words: &str, name: &str| assert_eq!(slug(words), name);
        check("Silica", "silica");
        check("Python best practices", "python_best_practices");
        check("2025-Q1", "2025-q1");
        check("C++ & Rust: notes!", "c_rust_notes");
        check("Bob's café", "bobs_café");
        check("***", "notes");
        check("../../far/canary", "far_canary");
        check("Version 3.11", "version_3.11");
    }

    #[test]
    fn titles_from_paths() {
        assert_eq!(title_of("projects/personal_website"), "Personal Website");
        assert_eq!(title_of("2025-q1"), "2025-q1");
        assert_eq!(title_of("memory"), "Memory");
    }
}
