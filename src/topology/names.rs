//! Names of internal topics (`InternalTopologyBuilder#decorateTopic`, `ProcessorStateManager#storeChangelogTopic`).

use std::sync::LazyLock;

use regex::Regex;

/// Full name of a repartition topic: `<prefix>-[<named topology>-]<raw>`.
pub fn internal(prefix: &str, named_topology: Option<&str>, raw: &str) -> String {
    match named_topology {
        Some(name) => format!("{prefix}-{name}-{raw}"),
        None => format!("{prefix}-{raw}"),
    }
}

/// Full name of the changelog of a store: `<prefix>-[<named topology>-]<store>-changelog`.
pub fn changelog(prefix: &str, named_topology: Option<&str>, store: &str) -> String {
    format!("{}-changelog", internal(prefix, named_topology, store))
}

/// True for a raw name that Kafka Streams gives to repartition topics, the two of a foreign-key join included.
pub fn is_repartition_name(raw: &str) -> bool {
    raw.ends_with("-repartition") || is_foreign_key_name(raw)
}

/// True for a topic that carries the prefix and a suffix of internal topics, so may be the application's own.
pub fn is_internal_name(prefix: &str, name: &str) -> bool {
    name.strip_prefix(prefix)
        .and_then(|rest| rest.strip_prefix('-'))
        .is_some_and(|raw| raw.ends_with("-changelog") || is_repartition_name(raw))
}

/// False for a repartition topic that cannot have an explicit count: only `repartition()` takes one, and it names its topic
/// `KSTREAM-REPARTITION-n-repartition` or after the user's own name.
pub fn may_be_pinned(raw: &str) -> bool {
    static GENERATED: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^(KSTREAM|KTABLE|COGROUPKSTREAM)-[A-Z-]*-?[0-9]{10}").ok());
    let generated = GENERATED.as_ref().is_some_and(|regex| regex.is_match(raw));
    raw.ends_with("-repartition") && (!generated || raw.starts_with("KSTREAM-REPARTITION-"))
}

fn is_foreign_key_name(raw: &str) -> bool {
    static GENERATED: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-[0-9]{10}-topic$").ok());
    raw.ends_with("-subscription-registration-topic")
        || raw.ends_with("-subscription-response-topic")
        || GENERATED.as_ref().is_some_and(|regex| regex.is_match(raw))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_names() {
        assert_eq!(internal("shop", None, "k-repartition"), "shop-k-repartition");
        assert_eq!(internal("shop", Some("eu"), "k-repartition"), "shop-eu-k-repartition");
        assert_eq!(changelog("shop", None, "totals"), "shop-totals-changelog");
    }

    #[test]
    fn only_repartition_takes_a_count() {
        for raw in ["KSTREAM-REPARTITION-0000000004-repartition", "by-customer-repartition", "x-left-repartition"] {
            assert!(may_be_pinned(raw), "{raw}");
        }
        for raw in [
            "KSTREAM-AGGREGATE-STATE-STORE-0000000003-repartition",
            "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000014-topic",
            "KSTREAM-MAP-0000000012-repartition",
            "x-subscription-response-topic",
        ] {
            assert!(!may_be_pinned(raw), "{raw}");
        }
    }

    #[test]
    fn own_topics_are_known_by_prefix_and_suffix() {
        assert!(is_internal_name("shop", "shop-k-repartition"));
        assert!(is_internal_name("shop", "shop-totals-changelog"));
        assert!(is_internal_name("shop", "shop-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000014-topic"));
        assert!(!is_internal_name("shop", "shop-orders"));
        assert!(!is_internal_name("shop", "shopping-k-repartition"));
    }
}
