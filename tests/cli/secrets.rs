//! Secrets: given by file, environment or flag, they show nowhere, not even in the log of everything.

use super::{EMAIL, SOON, command, stderr, stdout, write};

/// What must never be seen, in no part.
const SECRET: &str = "hunter2-0123456";

/// Properties that hold a secret, each with what librdkafka needs beside it to take it.
const SECRETS: [&str; 8] = [
    "sasl.password",
    "ssl.key.password",
    "ssl.keystore.password",
    "ssl.key.pem",
    "sasl.oauthbearer.config",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.assertion.private.key.passphrase",
];

/// The ways to give a property.
#[derive(Clone, Copy, Debug)]
enum Way {
    File,
    Environment,
    Flag,
}

/// Runs the binary with the property set, everything logged, and returns all that it said.
fn said(arguments: &[&str], property: &str, way: Way) -> String {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let in_file = format!("kafka:\n  properties:\n    debug: all\n    {property}: '{SECRET}'\n");
    let file = write(directory.path(), &in_file);
    let flag = format!("kafka.properties.{property}={SECRET}");
    let mut given = arguments.to_vec();
    given.extend(["--set", EMAIL, "--set", "kafka.bootstrap_servers=127.0.0.1:1"]);
    match way {
        Way::File => given.extend(["--config", &file]),
        Way::Flag => given.extend(["--set", &flag, "--set", "kafka.properties.debug=all"]),
        Way::Environment => given.extend(["--set", "kafka.properties.debug=all"]),
    }
    let mut run = command(&given);
    run.env("RUST_LOG", "trace").timeout(SOON);
    if let Way::Environment = way {
        let name = property.replace('.', "_").to_ascii_uppercase();
        run.env(format!("PUNCTUAL__KAFKA__PROPERTIES__{name}"), SECRET);
    }
    let output = run.output().expect("the binary is built beside its tests");
    format!("{}{}", stdout(&output), stderr(&output))
}

#[test]
fn no_secret_is_printed_whatever_way_it_came() {
    for property in SECRETS {
        for way in [Way::File, Way::Environment, Way::Flag] {
            let printed = said(&["config", "print"], property, way);
            let is_shown = |text: &str| printed.lines().any(|line| line.contains(property) && line.contains(text));
            // A property that this build of librdkafka does not have is refused by its name, without the value.
            assert!(
                is_shown("\"***\"") || printed.contains("error: kafka.properties."),
                "{property} {way:?}: {printed}"
            );
            assert!(!printed.contains("hunter2"), "{property} {way:?}: {printed}");
        }
    }
}

#[test]
fn no_secret_is_in_the_log_of_a_tool_or_in_its_errors() {
    for property in SECRETS {
        for way in [Way::File, Way::Environment, Way::Flag] {
            let told = said(&["topics", "validate", "--timeout", "300ms"], property, way);
            assert!(told.contains("error: "), "{property} {way:?}: {told}");
            assert!(!told.contains("hunter2"), "{property} {way:?}: {told}");
        }
    }
    // And the log does say what the client library does.
    let told = said(&["topics", "validate", "--timeout", "300ms"], "sasl.password", Way::File);
    assert!(told.contains("librdkafka"), "{told}");
}

#[test]
fn what_is_wrong_around_a_secret_is_told_without_it() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    for text in [
        "kafka: {properties: {sasl.password: [hunter2-0123456]}}\n",
        "kafka:\n  properties:\n    sasl.password: \"hunter2-0123456\n",
        "kafka:\n  properties:\n    sasl.pasword: hunter2-0123456\n",
        "kafka:\n  sasl.password: hunter2-0123456\n",
        "sasl.password: hunter2-0123456\n",
        "kafka:\n  properties:\n    ssl.key.pem: hunter2-0123456\n    ssl.key.pem: hunter2-0123456\n",
        "kafka:\n  properties:\n    sasl.password: &x hunter2-0123456\n    ssl.key.password: *x\n",
    ] {
        let file = write(directory.path(), text);
        let output = command(&["config", "validate", "--set", EMAIL, "--config", &file]).output().expect("it runs");
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{text}: {told}");
        assert!(!told.contains("hunter2"), "{text}: {told}");
    }
}
