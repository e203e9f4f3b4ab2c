//! Topic patterns of pattern sources: Java's regular expressions, which must match the whole name.

use regex::Regex;

/// A pattern source's regular expression.
#[derive(Clone, Debug)]
pub struct TopicPattern {
    java: String,
    regex: Regex,
}

impl TopicPattern {
    /// Reads a regular expression as `java.util.regex.Pattern` prints it; the error says what is not understood.
    pub fn new(java: &str) -> Result<Self, String> {
        let regex = Regex::new(&format!("^(?s:{})$", without_quotes(java)))
            .map_err(|error| format!("the topic pattern {java} cannot be read: {}", last_line(&error.to_string())))?;
        Ok(Self { java: java.to_owned(), regex })
    }

    /// True if the whole name matches.
    pub fn matches(&self, topic: &str) -> bool {
        self.regex.is_match(topic)
    }

    /// As it stands in the topology.
    pub fn as_str(&self) -> &str {
        &self.java
    }
}

/// Java's `\Q...\E` (what stands between is meant literally) does not exist in other dialects.
fn without_quotes(java: &str) -> String {
    let mut out = String::with_capacity(java.len());
    let mut rest = java;
    while let Some((before, quoted)) = rest.split_once(r"\Q") {
        let (literal, after) = quoted.split_once(r"\E").unwrap_or((quoted, ""));
        out.push_str(before);
        out.push_str(&regex::escape(literal));
        rest = after;
    }
    out.push_str(rest);
    out
}

fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or(text).trim_start_matches("error: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_whole_names_only() {
        for (java, yes, no) in [
            (r"events\..*", "events.eu", "more-events.eu"),
            ("orders|returns", "returns", "returns-2"),
            (r"\Qa.b\E-[0-9]+", "a.b-12", "axb-12"),
            (r"\Qa.b", "a.b", "acb"),
            ("[ab].*", "a-1", "c-1"),
        ] {
            let pattern = TopicPattern::new(java).unwrap();
            assert!(pattern.matches(yes), "{java} {yes}");
            assert!(!pattern.matches(no), "{java} {no}");
        }
    }

    #[test]
    fn says_what_it_cannot_read() {
        let error = TopicPattern::new("(?!x).*").unwrap_err();
        assert!(error.contains("(?!x).*") && error.contains("look-around"), "{error}");
    }
}
