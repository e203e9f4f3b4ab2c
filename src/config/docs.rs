//! Help and documents, made from the table of keys.

use std::fmt::Write as _;

use super::keys::{Key, Scope, TABLE};
use super::kinds::Kind;
use super::schema;

/// The keys for `--help`: name, default and meaning of each.
pub fn help_text() -> String {
    let mut text = String::from(
        "Settings (in --config FILE, as environment variable with dots as underscores, or as --set KEY=VALUE; later ones win):\n",
    );
    for key in TABLE {
        let default = key.default.map(|default| format!(" [default: {default}]")).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = write!(text, "\n  {}{default}\n          {}\n", key.name, key.help);
    }
    text
}

const INTRODUCTION: &str = "\
<!-- Made from src/config/keys.rs by `partition-autoscaler config docs`; a test compares. -->

# Configuration

Settings are read from four places; a later one wins:

1. defaults,
2. the files named by `--config`,
3. environment variables: the name in capitals with `.` and `-` as `_`, for example `PARTITION_AUTOSCALING_ENABLED`. An empty
   variable counts as not set. Settings of librdkafka are taken from variables such as `KAFKA_SASL_PASSWORD`,
4. `--set key=value`.

`partition-autoscaler config show` prints every value with the place it came from, `partition-autoscaler config check` says what
is wrong, all of it at once.

## Files

A file that ends in `.toml` is TOML: dotted keys look exactly like Kafka properties (`log.level = \"info\"`), tables are the same
thing written differently (`[log]`, then `level = \"info\"`). Unknown keys are errors.

A file that ends in `.properties` may be the one of the Kafka Streams application itself. `application.id` and
`bootstrap.servers` are taken from it, and so are `security.protocol`, `sasl.*` and `ssl.*` as far as librdkafka knows them under
the same name. Where it does not (`sasl.jaas.config`, JKS stores) a warning says what to write. Other settings of the application
are named once in a warning; only what looks like a slip in one of our keys is an error.

Times are milliseconds or have a unit: `900000` or `15m`. Lists are arrays in TOML and separated by commas elsewhere, `none` is
the empty list.

## Topology

`topology.file` or `topology.url` give the text of `Topology#describe()`. What the text does not tell is stated beside it, as keys
or as fields of the `[topology]` table:

```toml
[topology]
file = \"topology.txt\"
pinned = []
copartition_groups = [[\"orders\", \"customers\"]]
```

With `[[topology.subtopologies]]` the table is the complete topology, and no text is needed.

## Several applications

One process serves several applications when several files are given, or when a TOML file has `[[application]]` tables. What
stands above the tables counts for all of them; `http.*` and `log.*` can only stand there.

## Secrets

A secret is best kept in a file of its own: `kafka.sasl.password.file = \"/run/secrets/kafka\"` reads `kafka.sasl.password` from
there. Passwords, keys and other secrets, and user and password in a URL, are shown as `[redacted]`.

## Keys
";

/// `docs/configuration.md`
pub fn markdown() -> String {
    let mut text = INTRODUCTION.to_owned();
    for key in TABLE {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n### `{}`\n\n{}\n\n", key.name, key.help);
        for (name, value) in facts(key) {
            let _ = writeln!(text, "* {name}: {value}");
        }
    }
    text
}

/// `docs/configuration.schema.json`: of a TOML file, as JSON.
pub fn json_schema() -> String {
    format!("{:#}\n", schema::schema())
}

fn facts(key: &Key) -> Vec<(&'static str, String)> {
    let mut facts = vec![("Value", key.kind.expected())];
    facts.push(("Default", key.default.map_or_else(|| "not set".to_owned(), |default| format!("`{default}`"))));
    facts.push(("Example", format!("`{}`", key.example)));
    if let Kind::Choice(choices) = key.kind {
        let missing: Vec<String> =
            choices.iter().filter(|choice| choice.instead.is_some()).map(|choice| format!("`{}`", choice.name)).collect();
        if !missing.is_empty() {
            facts.push(("Not available in this version", missing.join(", ")));
        }
    }
    facts.push(("Importance", key.importance.name().to_owned()));
    facts.push(("A new value counts", key.reload.name().to_owned()));
    if let Some(variable) = key.variable() {
        facts.push(("Environment", format!("`{variable}`")));
    }
    if let Some(field) = key.field {
        facts.push(("In the `[topology]` table", format!("`{field}`")));
    }
    if key.scope == Scope::Process {
        facts.push(("Scope", "the whole process".to_owned()));
    }
    if key.secret {
        facts.push(("Secret", "what is secret in it is redacted".to_owned()));
    }
    facts
}
