//! Layers: which value wins, that it wins to the byte (O1), and which keys are refused (O2).

use std::path::PathBuf;

use super::*;

fn sources(file: &str, environment: &[(&str, &str)], set: &[&str]) -> Sources {
    Sources {
        file: Some((PathBuf::from("p.yaml"), file.to_owned())),
        environment: environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        set: set.iter().map(|&s| s.to_owned()).collect(),
        host_name: "host".to_owned(),
    }
}

fn value(layers: &Layers, key: &str) -> String {
    match &layers.get(key).unwrap().node {
        Node::Text { text, .. } => text.clone(),
        other @ (Node::Empty | Node::List(_) | Node::Map(_)) => format!("{other:?}"),
    }
}

fn refusal(file: &str, environment: &[(&str, &str)], set: &[&str]) -> String {
    Layers::merge(&sources(file, environment, set)).unwrap_err().to_string()
}

#[test]
fn later_layers_win() {
    let file = "kafka:\n  group: file\n  session_timeout: 6s\nworkers: 2\n";
    let environment = [("PUNCTUAL__KAFKA__GROUP", "environment"), ("PUNCTUAL__WORKERS", "3"), ("HOME", "/root")];
    let layers = Layers::merge(&sources(file, &environment, &["workers=4"])).unwrap();
    assert_eq!(value(&layers, "kafka.session_timeout"), "6s");
    assert_eq!(value(&layers, "kafka.group"), "environment");
    assert_eq!(value(&layers, "workers"), "4");
    assert_eq!(value(&layers, "commit.linger"), "100ms");
    assert_eq!(layers.get("kafka.session_timeout").unwrap().origin.to_string(), "p.yaml line 3");
    assert_eq!(layers.get("workers").unwrap().origin, Origin::Flag);
}

/// O1: every key through the environment, and a flag, to the byte.
#[test]
fn every_key_takes_exact_strings_from_the_environment_and_from_flags() {
    let awkward = [
        "0123456",
        "true",
        "NO",
        "1e3",
        "9007199254740993",
        "a#b",
        "p=q=r",
        "a,b",
        " two  spaces ",
        "null",
        "~",
        "",
        "\"quoted\"",
        "{a: b}",
        "[x]",
        "line\nline",
        "ünïcödé",
        "$HOME",
        "%41",
        "\\n",
        "- x",
        "&a",
        "*a",
        "!t",
    ];
    let defaults = Layers::defaults().unwrap();
    let keys: Vec<_> = defaults.keys().filter(|key| !is_list(key)).chain(["kafka.properties.sasl.password"]).collect();
    for text in awkward {
        for key in &keys {
            let variable = match key.strip_prefix(PROPERTIES) {
                Some(property) => format!("PUNCTUAL__KAFKA__PROPERTIES__{}", property.replace('.', "_").to_uppercase()),
                None => format!("PUNCTUAL__{}", key.replace('.', "__").to_uppercase()),
            };
            let layers = Layers::merge(&sources("", &[(&variable, text)], &[])).unwrap();
            assert_eq!(value(&layers, key), text, "{variable}");
            let layers = Layers::merge(&sources("", &[], &[&format!("{key}={text}")])).unwrap();
            assert_eq!(value(&layers, key), text, "--set {key}");
        }
    }
}

#[test]
fn a_file_keeps_strings_exact_too() {
    let layers = Layers::merge(&sources("kafka: {properties: {sasl.password: 0123456, a.b: 1.10}}", &[], &[])).unwrap();
    assert_eq!(value(&layers, "kafka.properties.sasl.password"), "0123456");
    assert_eq!(value(&layers, "kafka.properties.a.b"), "1.10");
}

#[test]
fn properties_may_be_dotted_or_nested() {
    let dotted = "kafka:\n  properties:\n    sasl.password: x\n";
    let nested = "kafka:\n  properties:\n    sasl:\n      password: x\n";
    let flat = "kafka.properties.sasl.password: x\n";
    for file in [dotted, nested, flat] {
        let layers = Layers::merge(&sources(file, &[], &[])).unwrap();
        let names: Vec<_> = layers.properties().map(|(name, _)| name).collect();
        assert_eq!(names, ["sasl.password"], "{file}");
    }
}

#[test]
fn a_list_replaces_the_whole_list() {
    let file = "kinds:\n  - {number: 1, name: a}\n  - {number: 2, name: b}\n";
    let count = |layers: &Layers| match &layers.get(KINDS).unwrap().node {
        Node::List(items) => items.len(),
        Node::Empty | Node::Text { .. } | Node::Map(_) => 99,
    };
    assert_eq!(count(&Layers::merge(&sources(file, &[], &[])).unwrap()), 2);
    let yaml = [("PUNCTUAL__KINDS", "[{number: 3, name: c}]")];
    assert_eq!(count(&Layers::merge(&sources(file, &yaml, &[])).unwrap()), 1);
    let json = [r#"kinds=[{"number":3,"name":"c"},{"number":4,"name":"d"},{"number":5,"name":"e"}]"#];
    assert_eq!(count(&Layers::merge(&sources(file, &[], &json)).unwrap()), 3);
}

/// O2: a typo is refused by name, wherever it stands.
#[test]
fn unknown_keys_are_refused_by_name_with_the_nearest() {
    assert_eq!(
        refusal("kafka:\n  session_timout: 6s\n", &[], &[]),
        "kafka.session_timout: is no setting; did you mean `kafka.session_timeout`? (from p.yaml line 2)"
    );
    assert_eq!(
        refusal("", &[("PUNCTUAL__KAFKA__GROUPS", "x")], &[]),
        "kafka.groups: is no setting; did you mean `kafka.group`? (from environment variable PUNCTUAL__KAFKA__GROUPS)"
    );
    assert_eq!(
        refusal("", &[], &["session_timeout=6s"]),
        "session_timeout: is no setting; did you mean `kafka.session_timeout`? (from flag --set)"
    );
    assert_eq!(
        refusal("zzz: 1", &[], &[]),
        "zzz: is no setting; `punctual config print` shows all that there are (from p.yaml line 1)"
    );
    assert_eq!(
        refusal("", &[("PUNCTUAL__KINDS__0__NAME", "x")], &[]),
        "kinds.0.name: is no setting: the list of kinds is set as a whole, as YAML or JSON, such as \
         kinds=[{number: 1, name: email}] (from environment variable PUNCTUAL__KINDS__0__NAME)"
    );
    assert_eq!(refusal("", &[], &["workers"]), "workers: has no `=`; write --set section.key=value (from flag --set)");
}

#[test]
fn values_of_the_wrong_shape_are_refused() {
    assert_eq!(refusal("kafka: 3", &[], &[]), "kafka: is a section, it takes keys and no value (from p.yaml line 1)");
    assert_eq!(refusal("workers: [1, 2]", &[], &[]), "workers: takes one value, not several (from p.yaml line 1)");
    assert_eq!(
        refusal("workers: {min: 1}", &[], &[]),
        "workers.min: is no setting; did you mean `workers`? (from p.yaml line 1)"
    );
    assert_eq!(
        refusal("\ninstance:\n", &[], &[]),
        "instance: has no value; write \"\" for an empty one, or remove the line (from p.yaml line 2)"
    );
    assert_eq!(
        refusal("kinds: {number: 1}", &[], &[]),
        "kinds.number: is no setting: the list of kinds is set as a whole, as YAML or JSON, such as \
         kinds=[{number: 1, name: email}] (from p.yaml line 1)"
    );
    assert_eq!(
        refusal("kinds: email", &[], &[]),
        "kinds: is not a list; write [{number: 1, name: email}] (from p.yaml line 1)"
    );
    assert_eq!(refusal("- a", &[], &[]), "--config: the file holds no `key: value` lines (from p.yaml line 1)");
    assert!(refusal("a: [", &[], &[]).starts_with("--config: not valid YAML: "), "names the flag");
}

#[test]
fn a_key_that_stands_twice_in_a_layer_is_refused() {
    assert_eq!(
        refusal("workers: 1\nworkers: 2\n", &[], &[]),
        "workers: is given twice; keep one of them (from p.yaml line 2)"
    );
    assert_eq!(
        refusal("kafka: {group: a}\nkafka.group: b\n", &[], &[]),
        "kafka.group: is given twice; keep one of them (from p.yaml line 2)"
    );
    assert_eq!(
        refusal("", &[], &["workers=1", "workers=2"]),
        "workers: is given twice; keep one of them (from flag --set)"
    );
}

#[test]
fn an_empty_section_is_no_error() {
    let layers = Layers::merge(&sources("kafka:\ntopics: ~\nkafka.properties:\n", &[], &[])).unwrap();
    assert_eq!(layers, Layers::defaults().unwrap());
}
