//! Which nodes and connections a query selects, by type and by property.

use std::cmp::Ordering;
use std::str::FromStr;

use serde_json::Value;

use super::entry::Properties;

/// A selection of nodes or connections.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Query {
    /// Those of this type, or of one that extends it.
    pub kind: Option<String>,
    /// Those whose properties pass all of these.
    pub filters: Vec<Filter>,
    /// Connections that start here.
    pub from: Option<String>,
    /// Connections that end here.
    pub to: Option<String>,
    /// How many to skip.
    pub skip: usize,
    /// How many to return at most; 0 for all.
    pub limit: usize,
}

impl Query {
    /// Whether the match with this number, from 1, is to be shown.
    pub(super) fn shows(&self, number: usize) -> bool {
        number > self.skip && (self.limit == 0 || number - self.skip <= self.limit)
    }
}

/// A condition on a property.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    name: String,
    test: Test,
    value: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Test {
    Is,
    IsNot,
    Less,
    AtMost,
    More,
    AtLeast,
    Has,
    Contains,
}

const TESTS: &[(&str, Test)] = &[
    ("!=", Test::IsNot),
    ("<=", Test::AtMost),
    (">=", Test::AtLeast),
    ("=", Test::Is),
    ("<", Test::Less),
    (">", Test::More),
    ("~", Test::Contains),
];

impl FromStr for Filter {
    type Err = String;

    /// Reads `name=value`, with `!=`, `<`, `<=`, `>`, `>=` or `~` (contains) in place of `=`; `name` alone
    /// means that it exists. A value that is JSON is read as JSON, any other as text.
    fn from_str(text: &str) -> Result<Self, String> {
        let first = TESTS.iter().filter_map(|(sign, test)| Some((text.find(sign)?, *sign, *test)));
        let first = first.min_by_key(|(at, sign, _)| (*at, usize::MAX - sign.len()));
        let (name, test, value) = match first {
            Some((at, sign, test)) => (&text[..at], test, &text[at + sign.len()..]),
            None => (text, Test::Has, ""),
        };
        if name.trim().is_empty() {
            return Err(format!(
                "`{}` names no property: a filter looks like status=active",
                text.escape_debug()
            ));
        }
        if let Some(sign) = value.chars().next().filter(|first| test == Test::Is && "<>=!".contains(*first)) {
            return Err(format!(
                "`{}` has `{sign}` after `=`: at least is >=, at most is <=",
                text.escape_debug()
            ));
        }
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        Ok(Filter { name: name.trim().to_owned(), test, value })
    }
}

impl Filter {
    /// Whether properties pass.
    pub fn fits(&self, properties: &Properties) -> bool {
        let there = properties.get(&self.name);
        match self.test {
            Test::Has => there.is_some(),
            Test::Is => there.is_some_and(|there| self.is(there)),
            Test::IsNot => !there.is_some_and(|there| self.is(there)),
            Test::Contains => there.is_some_and(|there| self.is_in(there)),
            test => there.and_then(|there| compared(there, &self.value)).is_some_and(|order| match test {
                Test::Less => order == Ordering::Less,
                Test::AtMost => order != Ordering::Greater,
                Test::More => order == Ordering::Greater,
                _ => order != Ordering::Less,
            }),
        }
    }

    /// Whether a property has the value. Numbers are equal in any notation, and a text equals what it
    /// spells.
    fn is(&self, there: &Value) -> bool {
        let same = match (there, &self.value) {
            // Only a number with a point or an exponent has several notations.
            (Value::Number(one), Value::Number(other)) if one.is_f64() || other.is_f64() => {
                one.as_f64() == other.as_f64()
            }
            (there, wanted) => there == wanted,
        };
        same || there.as_str().is_some_and(|text| text == plain(&self.value))
    }

    fn is_in(&self, there: &Value) -> bool {
        let wanted = plain(&self.value).to_lowercase();
        match there {
            Value::Array(items) => items.iter().any(|item| plain(item).to_lowercase() == wanted),
            there => plain(there).to_lowercase().contains(&wanted),
        }
    }
}

/// A value as text: a string without its quotes.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn compared(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64()?.partial_cmp(&other.as_f64()?),
        (Value::String(one), other) => Some(one.as_str().cmp(&plain(other))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters() {
        let properties: Properties = serde_json::from_str(
            r#"{"status":"active","n":5,"tags":["Red","blue"],"day":"2026-01-31","zip":"007"}"#,
        )
        .expect("properties");
        let check = |text: &str, expected: bool| {
            assert_eq!(text.parse::<Filter>().map(|filter| filter.fits(&properties)), Ok(expected), "{text}");
        };
        for (text, expected) in [
            ("status=active", true),
            ("status=\"active\"", true),
            ("status!=active", false),
            ("none!=x", true),
            ("n=5", true),
            ("n=5.0", true),
            ("n=5e0", true),
            ("n!=5.0", false),
            ("n=5.5", false),
            ("n>4", true),
            ("n>=6", false),
            ("n<5.5", true),
            ("n", true),
            ("none", false),
            ("tags~red", true),
            ("tags~re", false),
            ("status~CTIV", true),
            ("day>2026-01-01", true),
            ("zip=007", true),
            ("day<=2026-01-31", true),
            ("status>1", true),
        ] {
            check(text, expected);
        }
        for bad in ["=x", "", "n=>5", "n==5", "n=<5"] {
            assert!(bad.parse::<Filter>().is_err(), "{bad}");
        }
        assert!("text=\">5\"".parse::<Filter>().is_ok(), "quoted, it is text");
    }
}
