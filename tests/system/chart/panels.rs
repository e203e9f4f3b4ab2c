//! What every panel of the dashboard shows after one growth of a healthy application from three to six partitions.

use std::collections::BTreeMap;

use serde_json::Value;

use super::prometheus::Prometheus;

/// A value in a panel.
#[derive(Clone, Copy)]
enum Shows {
    Is(f64),
    MoreThanZero,
    /// What it is depends on the machine.
    Something,
}
use Shows::{Is, MoreThanZero, Something};

impl Shows {
    fn fits(self, value: f64) -> bool {
        match self {
            Is(wanted) => value == wanted,
            MoreThanZero => value.is_finite() && value > 0.0,
            Something => value.is_finite(),
        }
    }
}

/// Title of a panel, and every line in it: legend and value.
const PANELS: &[(&str, &[(&str, Shows)])] = &[
    ("Sidecars that act", &[("charted", Is(1.0))]),
    ("Assignor error", &[("charted: NONE", Is(1.0))]),
    ("Failures", &[("charted", Is(0.0))]),
    ("Age of the last observation", &[("charted", Something)]),
    ("State", &[("charted steady", Is(1.0))]),
    ("Tasks now", &[("charted 0", Is(6.0)), ("charted 1", Is(6.0))]),
    ("Tasks expected", &[("charted 0", Is(6.0)), ("charted 1", Is(6.0))]),
    ("Tasks missing", &[("charted 0", Is(0.0)), ("charted 1", Is(0.0))]),
    ("Reaction", &[("charted median", MoreThanZero), ("charted 99 %", MoreThanZero)]),
    ("Parts of the reaction", &[("charted plan", Something), ("charted request", MoreThanZero), ("charted verify", Something)]),
    ("Gap", &[("charted median", MoreThanZero), ("charted 99 %", MoreThanZero)]),
    ("Settling", &[("charted median", MoreThanZero), ("charted 99 %", MoreThanZero)]),
    (
        "Expansions and requests",
        &[
            ("charted done", MoreThanZero),
            ("charted failed", Is(0.0)),
            ("charted superseded", Is(0.0)),
            ("charted requests", MoreThanZero),
        ],
    ),
    (
        "Partitions added",
        &[("charted input", Is(0.0)), ("charted repartition", MoreThanZero), ("charted changelog", MoreThanZero)],
    ),
    (
        "Decisions",
        &[
            ("charted none", Something),
            ("charted expand", MoreThanZero),
            ("charted waiting", Is(0.0)),
            ("charted blocked", Is(0.0)),
        ],
    ),
    ("Blocked and waiting, by code", &[]),
    ("Observations", &[("charted ok", MoreThanZero), ("charted partial", Is(0.0)), ("charted error", Is(0.0))]),
    ("Time of an observation", &[("charted median", MoreThanZero), ("charted 99 %", MoreThanZero)]),
    ("Errors", &[]),
    ("Throttled", &[("charted", Is(0.0))]),
    ("Age of the last look at the group", &[("charted", Something)]),
    ("Epoch", &[("charted", MoreThanZero)]),
    ("Changes of leader", &[("charted leading", Something), ("charted following", Something)]),
    (
        "Acting put off",
        &[
            ("charted fenced", Something),
            ("charted not_member", Something),
            ("charted timed_out", Something),
            ("charted other", Something),
        ],
    ),
    (
        "Records passed over",
        &[
            ("charted not_a_key", Is(0.0)),
            ("charted unknown_version", Is(0.0)),
            ("charted unknown_type", Is(0.0)),
            ("charted malformed", Is(0.0)),
            ("charted too_long", Is(0.0)),
            ("charted too_many", Is(0.0)),
        ],
    ),
    ("Memory", &[("pod-0", MoreThanZero), ("pod-1", MoreThanZero)]),
    ("Processor", &[("pod-0", Something), ("pod-1", Something)]),
    ("Configuration in order", &[("pod-0", Is(1.0)), ("pod-1", Is(1.0))]),
    ("Age of the configuration", &[("pod-0", Something), ("pod-1", Something)]),
    ("Versions", &[(env!("CARGO_PKG_VERSION"), Is(2.0))]),
];

/// Grafana's variables as they are when everything is selected. The window covers the whole test, however long it takes.
fn filled(expression: &str) -> String {
    [("$__rate_interval", "1h"), ("$__range", "1h"), ("$application", ".+")]
        .iter()
        .fold(expression.to_owned(), |text, (variable, value)| text.replace(variable, value))
}

/// Asks every question of the dashboard, as of a time in seconds.
pub fn assert_dashboard(prometheus: &Prometheus, board: &Value, at: f64) {
    let panels = board["panels"].as_array().expect("panels").iter().filter(|panel| panel["type"] != "row");
    let mut problems = Vec::new();
    let mut wanted: BTreeMap<&str, &[(&str, Shows)]> = PANELS.iter().copied().collect();
    for panel in panels {
        let title = panel["title"].as_str().expect("a title");
        let shown = lines(prometheus, panel, at);
        let lines = wanted.remove(title).unwrap_or_else(|| panic!("nothing is said about the panel {title}"));
        let right = |(legend, value): (&String, &f64)| lines.iter().any(|line| line.0 == legend && line.1.fits(*value));
        if shown.len() != lines.len() || !shown.iter().all(right) {
            problems.push(format!("{title}: {shown:?}"));
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
    assert!(wanted.is_empty(), "no such panels: {:?}", wanted.keys());

    for variable in board["templating"]["list"].as_array().expect("variables") {
        let Some(definition) = variable["definition"].as_str() else { continue };
        let inner = definition.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')')).expect("label_values");
        let (series, label) = inner.split_once(", ").expect("series and label");
        assert_eq!(prometheus.label_values(series, label), serde_json::json!(["charted"]));
    }
    for annotation in board["annotations"]["list"].as_array().expect("annotations") {
        let marks = prometheus.query_range(&filled(annotation["expr"].as_str().expect("a text")), at - 3600.0, at);
        assert_eq!(marks.len(), 1, "{}", annotation["name"]);
    }
}

/// Legend and value of every line of a panel.
fn lines(prometheus: &Prometheus, panel: &Value, at: f64) -> BTreeMap<String, f64> {
    let mut lines = BTreeMap::new();
    for target in panel["targets"].as_array().expect("questions") {
        for series in prometheus.query(&filled(target["expr"].as_str().expect("a text")), at) {
            let labels = series["metric"].as_object().expect("labels").iter();
            let legend = labels.fold(target["legendFormat"].as_str().expect("a text").to_owned(), |text, (label, value)| {
                text.replace(&format!("{{{{{label}}}}}"), value.as_str().expect("a text"))
            });
            let value = series["value"][1].as_str().and_then(|value| value.parse().ok()).expect("a number");
            assert!(lines.insert(legend.clone(), value).is_none(), "two lines are {legend}: {}", panel["title"]);
        }
    }
    lines
}
