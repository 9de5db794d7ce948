//! Settings: the file, the environment, the flags.

use std::collections::BTreeMap;
use std::path::PathBuf;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use punctual::config::settings::Config;
use punctual::config::sources::Sources;

use crate::bounds::Ceiling;
use crate::mangled::{arbitrary, mangled};
use crate::trial::fuzz;

/// An operator's own text, once at the start: a node of two bytes is one of many words while it is read. The compiled-in
/// defaults are read each time, whatever the input.
const CEILING: Ceiling = Ceiling { bytes_for_each: 384, bytes_beside: 512 * 1024 };
const ERROR_BYTES_MAX: usize = 4096;

/// A file with everything in it that a file can hold.
const WHOLE: &str = "\
instance: punctual-1
state_dir: '/var/lib/punctual'
workers: 0123
kafka:
  bootstrap_servers: kafka-0:9092,kafka-1:9092
  group: \"timers-prod\"
  static_membership: false
  session_timeout: 1m 30s
  properties:
    security.protocol: SASL_SSL
    sasl.password: 'p: #\"'
    client.rack: NO
kafka.properties.linger.ms: 1
topics: {results: '', fired: \"f.{kind}\", partitions: 12, replication_factor: -1}
kinds:
  - {number: 1, name: email}
  - number: 2
    name: payment
    past_due: reject
    outbox: true
    outbox_topic: o
limits: {horizon: 400d, fired_bytes_max: 512KiB}
log:
  format: json
  level: debug
";

/// Sources that failed once: file, environment, flags.
const KEPT: &[Kept] = &[
    ("\u{1}orkers: 1\n", &[], &[]),
    ("", &[("PUNCTUAL__\u{b}", "0123456")], &[]),
    ("kafka:\n  properties:\n    \u{b}sasl.password: 'p: #\"'\n", &[], &[]),
];
type Kept = (&'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);

fn sources(file: Option<String>, environment: Vec<(String, String)>, set: Vec<String>) -> Sources {
    Sources { file: file.map(|text| (PathBuf::from("p.yaml"), text)), environment, set, host_name: "host".to_owned() }
}

fn input_bytes(sources: &Sources) -> usize {
    let file = sources.file.as_ref().map_or(0, |(_, text)| text.len());
    let environment: usize = sources.environment.iter().map(|(name, value)| name.len() + value.len()).sum();
    file + environment + sources.set.iter().map(String::len).sum::<usize>()
}

fn check(sources: &Sources) -> Result<(), TestCaseError> {
    match CEILING.check(input_bytes(sources), || Config::load(sources)) {
        Ok(config) => {
            // Whether it makes a service or not, judging it does not fail.
            drop(config.validate());
            check_print(&config)
        }
        Err(error) => {
            let text = error.to_string();
            prop_assert!(text.len() <= ERROR_BYTES_MAX, "{} bytes of error: {text}", text.len());
            prop_assert!(!text.chars().any(char::is_control), "an error of one line: {text:?}");
            Ok(())
        }
    }
}

/// What `config print` shows is a file that means the same, secrets aside.
fn check_print(config: &Config) -> Result<(), TestCaseError> {
    let printed = config.to_yaml();
    let again = Config::load(&sources(Some(printed.clone()), Vec::new(), Vec::new()));
    let Ok(again) = again else {
        return Err(TestCaseError::fail(format!("{again:?} from:\n{printed}")));
    };
    let (one, other) = (config.clone(), again);
    // What is hidden is hidden for its name: the name is still there.
    let hide = |(name, value): (&String, &String)| {
        let is_hidden = other.kafka.properties.get(name).is_some_and(|value| value == "***");
        (name.clone(), if is_hidden { "***".to_owned() } else { value.clone() })
    };
    let shown: BTreeMap<_, _> = one.kafka.properties.iter().map(hide).collect();
    prop_assert_eq!(&shown, &other.kafka.properties, "{}", printed);
    prop_assert_eq!(&one.kafka.group, &other.kafka.group);
    prop_assert_eq!(&one.kafka.bootstrap_servers, &other.kafka.bootstrap_servers);
    prop_assert_eq!(
        (&one.instance, &one.state_dir, &one.source, one.workers),
        (&other.instance, &other.state_dir, &other.source, other.workers)
    );
    prop_assert_eq!(
        (config.registry(), config.limits(), config.budget()),
        (other.registry(), other.limits(), other.budget())
    );
    prop_assert_eq!(&one.topics, &other.topics);
    prop_assert_eq!((&one.store, &one.log, one.admin_listen), (&other.store, &other.log, other.admin_listen));
    Ok(())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn what_failed_once_is_well() {
    for (file, environment, set) in KEPT {
        let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        check(&sources(Some((*file).to_owned()), environment, set.iter().map(|text| (*text).to_owned()).collect()))
            .unwrap();
    }
}

/// A key of a thousand characters is one that YAML itself does not read back.
#[test]
fn a_property_with_an_endless_name_is_refused() {
    let set = vec![format!("kafka.properties.{}=1", "a".repeat(2_000))];
    let error = Config::load(&sources(None, Vec::new(), set)).unwrap_err().to_string();
    assert!(error.contains("is no setting") && error.len() < 400, "{error}");
}

#[test]
fn the_whole_file_is_well() {
    let config = Config::load(&sources(Some(WHOLE.to_owned()), Vec::new(), Vec::new())).unwrap();
    assert_eq!(config.validate(), Ok(()));
    check_print(&config).unwrap();
}

#[test]
fn files_that_were_damaged() {
    fuzz(&mangled(Just(WHOLE.as_bytes().to_vec())), |file| check(&sources(Some(text(&file)), Vec::new(), Vec::new())));
}

#[test]
fn files_of_any_bytes() {
    fuzz(&arbitrary(), |file| check(&sources(Some(text(&file)), Vec::new(), Vec::new())));
}

#[test]
fn environments_and_flags_of_any_kind() {
    let key = prop_oneof![
        2 => prop::sample::select(&["WORKERS", "KAFKA__GROUP", "KINDS", "TOPICS__FIRED", "LIMITS__HORIZON", "ADMIN__LISTEN"][..]).prop_map(str::to_owned),
        1 => "KAFKA__PROPERTIES__[A-Z_]{0,24}",
        1 => "[A-Z_]{0,16}",
        1 => ".{0,16}",
    ];
    let value = prop_oneof![
        2 => prop::sample::select(&["0123456", "true", "1h", "18446744073709551616", "[{number: 1, name: email}]", "", "*a"][..]).prop_map(str::to_owned),
        1 => arbitrary().prop_map(|bytes| text(&bytes)),
    ];
    let pairs = vec((key, value), 0..5);
    fuzz(&(pairs.clone(), pairs), |(environment, flags)| {
        let environment = environment.into_iter().map(|(name, value)| (format!("PUNCTUAL__{name}"), value)).collect();
        let set = flags
            .into_iter()
            .map(|(key, value)| format!("{}={value}", key.to_lowercase().replace("__", ".")))
            .collect();
        check(&sources(None, environment, set))
    });
}
