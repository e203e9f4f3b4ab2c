//! `.properties` files, the application's own included.

use std::fmt::Write as _;
use std::path::Path;

use java_properties::{LineContent, PropertiesIter};

use super::streams;
use super::{Entry, File, Value, Warning, duplicates, unknown_key};
use crate::config::error::{Origin, Problem};
use crate::config::keys;

/// Reads a `.properties` file. Settings of the application are tolerated, those of its connection are taken over.
pub fn parse(text: &str, path: &Path) -> File {
    let mut file = File::default();
    let mut foreign = Vec::new();
    let origin = |line| Origin::File { path: path.to_owned(), line };
    for line in PropertiesIter::new(latin1(text).as_bytes()) {
        let line = match line {
            Ok(line) => line,
            Err(error) => {
                let message = "is not a valid properties line, expected key=value with whole \\uXXXX escapes";
                file.problems.push(Problem::new(origin(error.line_number().unwrap_or(0)), message));
                file.cut_short = true;
                break;
            }
        };
        let number = line.line_number();
        let LineContent::KVPair(key, value) = line.consume_content() else { continue };
        let entry = Entry { key, value: Value::Text(value), origin: origin(number) };
        if keys::find(&entry.key).is_some() {
            file.shared.push(entry);
        } else if keys::is_slip(&entry.key) {
            file.problems.push(unknown_key(entry.origin, &entry.key));
        } else {
            foreign.push(entry);
        }
    }
    file.problems.extend(duplicates(&file.shared));
    take_reset(&mut foreign, &mut file.shared);
    let translated = streams::translate(foreign);
    file.warnings = translated.warnings;
    if !translated.unused.is_empty() {
        let text =
            format!("{}: settings of the application that are not used here: {}", path.display(), translated.unused.join(", "));
        file.warnings.push(Warning { text, unless: &[] });
    }
    // What is written for us comes last and so wins over what was meant for the application.
    file.shared.splice(0..0, translated.entries);
    file
}

/// `auto.offset.reset` of the main consumer: Kafka Streams lets a setting with a longer prefix win.
fn take_reset(foreign: &mut Vec<Entry>, shared: &mut Vec<Entry>) {
    const RESET: &str = "auto.offset.reset";
    for prefix in ["consumer.", "main.consumer."] {
        let is_it = |entry: &mut Entry| entry.key.strip_prefix(prefix) == Some(RESET);
        if let Some(entry) = foreign.extract_if(.., is_it).last() {
            shared.retain(|entry| entry.key != RESET);
            shared.push(Entry { key: RESET.to_owned(), ..entry });
        }
    }
}

/// The same file in Latin-1, the encoding of `.properties`: all else as escapes.
fn latin1(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut units = [0; 2];
    for c in text.chars() {
        if c.is_ascii() {
            escaped.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut units) {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "\\u{unit:04x}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> File {
        parse(text, Path::new("shop.properties"))
    }

    #[test]
    fn lines_are_counted_over_comments_and_continuations() {
        let file = read("# a comment\napplication.id = shöp\\\n  -eu\n\nlog.level: warn\n");
        let lines: Vec<String> =
            file.shared.iter().map(|entry| format!("{} {} {}", entry.origin, entry.key, entry.value.plain())).collect();
        assert_eq!(lines, ["shop.properties:2 application.id shöp-eu", "shop.properties:5 log.level warn"]);
    }

    #[test]
    fn settings_of_the_application_are_named_once() {
        let file = read("application.id=shop\nnum.stream.threads=4\nstate.dir=/tmp\nnum.stream.threads=5\n");
        assert_eq!(file.problems, []);
        let warnings: Vec<&str> = file.warnings.iter().map(|warning| warning.text.as_str()).collect();
        assert_eq!(
            warnings,
            ["shop.properties: settings of the application that are not used here: num.stream.threads, state.dir"]
        );
    }

    #[test]
    fn the_offset_reset_of_the_main_consumer_counts() {
        let reset = |text: &str| {
            let file = read(text);
            assert_eq!((file.problems, file.warnings), (vec![], vec![]), "{text}");
            file.shared.iter().map(|entry| format!("{}={}", entry.key, entry.value.plain())).collect::<Vec<_>>().join(" ")
        };
        let (plain, consumer, main) =
            ("auto.offset.reset=a\n", "consumer.auto.offset.reset=b\n", "main.consumer.auto.offset.reset=c\n");
        assert_eq!(reset(plain), "auto.offset.reset=a");
        assert_eq!(reset(&format!("{consumer}{plain}")), "auto.offset.reset=b");
        assert_eq!(reset(&format!("{main}{consumer}{plain}")), "auto.offset.reset=c");
    }

    #[test]
    fn our_own_keys_may_not_be_mistyped_or_repeated() {
        let file = read("partition.autoscaling.enable=true\nlog.level=info\nlog.level=warn\n");
        let problems: Vec<String> = file.problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            [
                "shop.properties:1: partition.autoscaling.enable: is not a known key, did you mean partition.autoscaling.enabled?",
                "shop.properties:3: log.level: is given twice, the other time at shop.properties:2, expected once"
            ]
        );
    }

    #[test]
    fn a_broken_escape_is_a_problem_of_its_line() {
        let file = read("application.id=shop\nlog.level=\\u12\n");
        let problems: Vec<String> = file.problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            ["shop.properties:2: is not a valid properties line, expected key=value with whole \\uXXXX escapes"]
        );
    }
}
