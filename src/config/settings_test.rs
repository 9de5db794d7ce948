//! Settings as a whole: the defaults, every key refused when wrong, and what is printed.

use super::*;

fn load(file: &str, set: &[&str]) -> Result<Config, ConfigError> {
    Config::load(&Sources {
        file: Some((PathBuf::from("p.yaml"), file.to_owned())),
        set: set.iter().map(|&s| s.to_owned()).collect(),
        host_name: "host-1".to_owned(),
        ..Sources::default()
    })
}

#[test]
fn the_defaults_are_complete_and_valid() {
    let config = load("", &[]).unwrap();
    assert_eq!(config.instance, "host-1");
    assert_eq!(config.limits(), Limits::default(), "the core's own defaults are those of the settings");
    assert_eq!(config.budget().fired_max, 4000);
    assert_eq!(config.budget().bytes_max, 4 << 20);
    assert_eq!(config.kafka.session_timeout, Duration::from_secs(30));
    assert_eq!(config.topics.results.as_deref(), Some("timers.results"));
    assert_eq!(config.store.memory_budget, MemoryBudget::Auto);
    assert!(config.kafka.static_membership, "a restart keeps its partitions");
    assert!(config.admin_listen.ip().is_loopback(), "nobody elsewhere reads metrics unless told so");
}

#[test]
fn values_are_typed() {
    let config = load(
        "instance: a\n\
         topics: {results: '', replication_factor: -1}\n\
         store: {memory_budget: 64MiB}\n\
         log: {format: json, level: debug}\n\
         kafka: {properties: {sasl.password: 0123456}}\n\
         kinds: [{number: 7, name: email}]\n",
        &["admin.listen=0.0.0.0:0"],
    )
    .unwrap();
    assert_eq!(config.instance, "a");
    assert_eq!(config.topics.results, None);
    assert_eq!(config.topics.replication_factor, -1);
    assert_eq!(config.memory_budget_bytes(Path::new("/nowhere")), 64 << 20);
    assert_eq!(config.log, Log { format: LogFormat::Json, level: "debug" });
    assert_eq!(config.kafka.properties.get("sasl.password").map(String::as_str), Some("0123456"));
    assert_eq!(config.registry().by_name("email").unwrap().number.get(), 7);
    assert_eq!(config.topics.fired.values().collect::<Vec<_>>(), ["timers.fired.email"]);
    assert_eq!(config.admin_listen.port(), 0);
}

#[test]
fn a_wrong_value_of_any_key_is_refused_with_key_value_origin_and_remedy() {
    let config = load("", &[]).unwrap();
    // Free texts; `Config::validate` judges those that are names.
    let texts = [
        "instance",
        "state_dir",
        "source",
        "kafka.bootstrap_servers",
        "kafka.group",
        "topics.arm",
        "topics.changelog",
        "topics.dead_letter",
        "topics.results",
        "topics.fired",
        "topics.outbox",
    ];
    for key in config.layers.keys().filter(|key| !texts.contains(key)) {
        let error = load("", &[&format!("{key}=-7 wrong")]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{key}: ")), "{error}");
        assert!(error.contains("wrong") || ["kinds", "calendars"].contains(&key), "{error}");
        assert!(error.ends_with("(from flag --set)"), "{error}");
    }
    for key in ["state_dir", "source", "kafka.group", "topics.arm"] {
        let error = load("", &[&format!("{key}=")]).unwrap_err().to_string();
        assert_eq!(error, format!("{key}: `` is empty; give it a value (from flag --set)"));
    }
}

#[test]
fn the_printed_settings_load_to_the_same() {
    let file = "kafka:\n  group: 0123456\n  properties:\n    client.rack: 'NO'\n    security.protocol: SASL_SSL\n\
                state_dir: 'C# : {x}'\n\
                kinds:\n  - {number: 1, name: email, fired_topic: a}\n  - {number: 2, name: b, outbox: true}\n\
                calendars:\n  - {id: a, version: '01', first: 2026-01-01, last: 2026-12-31, weekend: [sat, sun], holidays: [2026-12-25]}\n";
    let config = load(file, &["source=line\nline # \"quoted\""]).unwrap();
    let again = load(&config.to_yaml(), &[]).unwrap();
    for key in config.layers.keys().filter(|key| !["kinds", "calendars"].contains(key)) {
        let text = |config: &Config| config.layers.text(key).unwrap().text.to_owned();
        assert_eq!(text(&config), text(&again), "{key}");
    }
    assert_eq!(config.kafka, again.kafka);
    assert_eq!(config.registry, again.registry);
    assert_eq!(config.topics, again.topics);
    assert_eq!(config.calendar, again.calendar);
}

#[test]
fn printing_shows_origins_and_no_secrets() {
    let properties = [
        "sasl.password=pässword",
        "ssl.key.pem=pässword",
        "ssl.key.password=pässword",
        "sasl.oauthbearer.client.secret=pässword",
        "sasl.username=user",
    ];
    let set: Vec<_> = properties.iter().map(|p| format!("kafka.properties.{p}")).collect();
    let yaml = load("kafka:\n  group: g\n", &set.iter().map(String::as_str).collect::<Vec<_>>()).unwrap().to_yaml();
    assert!(!yaml.contains("pässword"), "{yaml}");
    assert!(yaml.contains("    \"sasl.password\": \"***\"  # flag --set\n"), "{yaml}");
    assert!(yaml.contains("    \"sasl.username\": \"user\"  # flag --set\n"), "{yaml}");
    assert!(
        yaml.contains("\nkafka:\n  bootstrap_servers: \"localhost:9092\"  # default\n  group: g  # p.yaml line 2\n"),
        "{yaml}"
    );
    assert!(
        yaml.contains("\nstatic_membership: ") || yaml.contains("  static_membership: true  # default\n"),
        "{yaml}"
    );
    assert!(yaml.contains("\nkinds: []  # default\n"), "{yaml}");
}
