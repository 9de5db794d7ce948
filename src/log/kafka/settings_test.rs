//! Unit tests of the settings: what is refused, and what wins.

use super::*;

fn properties(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn refusal(key: &str, value: &str) -> String {
    check_properties(&properties(&[(key, value)])).unwrap_err().to_string()
}

fn settings(entries: &[(&str, &str)]) -> KafkaSettings {
    KafkaSettings {
        bootstrap_servers: "localhost:9092".to_owned(),
        properties: properties(entries),
        group: "timers".to_owned(),
        instance: "host-0".to_owned(),
        static_membership: true,
        session_timeout: Duration::from_secs(30),
        topics: Topics::default(),
        partitions: 4,
    }
}

#[test]
fn good_properties_pass() {
    let good = properties(&[("security.protocol", "SASL_SSL"), ("sasl.password", "0123456"), ("linger.ms", "5")]);
    assert_eq!(check_properties(&good), Ok(()));
}

#[test]
fn a_misspelt_property_is_named_without_its_value_which_may_be_a_secret() {
    assert_eq!(
        refusal("sasl.pasword", "hunter2"),
        "there is no librdkafka property `sasl.pasword`; see librdkafka's CONFIGURATION.md for their names"
    );
}

#[test]
fn a_bad_value_is_named_unless_it_is_a_secret() {
    assert_eq!(
        refusal("linger.ms", "soon"),
        "property `linger.ms` does not take the value `soon`: \
         Invalid value for configuration property \"queue.buffering.max.ms\""
    );
    let refused = refusal("ssl.key.password\0", "hunter2");
    assert!(refused.contains("(hidden)") && !refused.contains("hunter2"), "{refused}");
}

#[test]
fn every_owned_property_is_refused_and_exists() {
    let mut sorted = OWNED_PROPERTIES.to_vec();
    sorted.sort_unstable();
    assert_eq!(sorted, OWNED_PROPERTIES, "alphabetical, so that a duplicate shows");
    for (key, _) in OWNED_PROPERTIES {
        let expected = format!("property `{key}` cannot be set: ");
        assert!(refusal(key, "1").starts_with(&expected), "{key} is refused");
        let tried = ClientConfig::new().set(*key, "1").create_native_config();
        let is_unknown =
            matches!(tried.err(), Some(KafkaError::ClientConfig(RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN, ..)));
        assert!(!is_unknown, "{key} exists");
    }
}

#[test]
fn properties_win_over_defaults_and_lose_to_owned_ones() {
    let config = producer_config(&settings(&[("queue.buffering.max.ms", "3"), ("transactional.id", "x")]), 2);
    assert_eq!(config.get("queue.buffering.max.ms"), Some("3"));
    assert_eq!(config.get("linger.ms"), None, "the alias gives way");
    assert_eq!(config.get("transactional.id"), Some("timers-host-0-2"));
}

#[test]
fn every_client_can_be_configured() {
    let settings = settings(&[("compression.type", "lz4")]);
    for config in [
        group_config(&settings),
        restore_config(&settings),
        probe_config(&settings),
        producer_config(&settings, 0),
        base_config("localhost:9092", &settings.properties),
    ] {
        assert!(config.create_native_config().is_ok(), "{config:?}");
    }
}

#[test]
fn a_dynamic_member_has_no_instance_id() {
    let mut settings = settings(&[]);
    assert_eq!(group_config(&settings).get("group.instance.id"), Some("host-0"));
    settings.static_membership = false;
    assert_eq!(group_config(&settings).get("group.instance.id"), None);
}

#[test]
fn heartbeats_are_a_third_of_a_short_session() {
    let mut settings = settings(&[]);
    settings.session_timeout = Duration::from_millis(1_500);
    assert_eq!(group_config(&settings).get("heartbeat.interval.ms"), Some("500"));
    settings.session_timeout = Duration::from_mins(10);
    assert_eq!(group_config(&settings).get("heartbeat.interval.ms"), Some("1000"));
    assert_eq!(group_config(&settings).get("max.poll.interval.ms"), Some("600000"));
}
