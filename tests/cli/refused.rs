//! What is refused before anything is done: each mistake by its flag or key, its value, and the remedy.

use expect_test::expect;

use super::{EMAIL, check_refused};

#[test]
fn t9_wrong_times_are_refused_with_what_was_meant() {
    let arm = |more: &[&'static str]| [&["arm", "r", "t", "--kind", "email"], more].concat();
    check_refused(
        &arm(&["--after", "30m"]),
        2,
        &expect![[r#"
        error: --after `30m` is not a usable duration: expected to find duration beginning with `P` or `p`, but found `3` instead; write ISO 8601 such as PT30M, PT1.5S or P7D
          did you mean PT30M?
    "#]],
    );
    check_refused(
        &arm(&["--after", "P1M"]),
        2,
        &expect![[r#"
        error: --after `P1M` is not a usable duration: years and months have no fixed length; write ISO 8601 such as PT30M, PT1.5S or P7D
    "#]],
    );
    check_refused(
        &arm(&["--after", "-PT5S"]),
        2,
        &expect![[r#"
        error: --after `-PT5S` is not longer than nothing
          write a positive duration such as PT30M
    "#]],
    );
    check_refused(
        &arm(&["--at", "2026-12-01T09:00:00"]),
        2,
        &expect![[r#"
        error: --at `2026-12-01T09:00:00` is not an RFC 3339 instant such as 2026-12-01T09:00:00.250Z: failed to find offset component, which is required for parsing a timestamp
          it has no offset: write 2026-12-01T09:00:00Z if UTC is meant
    "#]],
    );
    check_refused(
        &arm(&["--at", "1796115600"]),
        2,
        &expect![[r#"
        error: --at `1796115600` is not an RFC 3339 instant such as 2026-12-01T09:00:00.250Z: failed to parse two digit integer as day: parameter 'day' is not in the required range of 1..=31
          write the instant, not its number of seconds or milliseconds
    "#]],
    );
    check_refused(
        &["seal-run", "r", "--retention", "1 month"],
        2,
        &expect![[r#"
        error: --retention `1 month` is not a usable duration: expected to find duration beginning with `P` or `p`, but found `1` instead; write ISO 8601 such as PT30M, PT1.5S or P7D
    "#]],
    );
}

#[test]
fn flags_that_exclude_or_need_each_other_are_refused() {
    let arm = |more: &[&'static str]| [&["arm", "r", "t", "--kind", "email"], more].concat();
    check_refused(
        &arm(&[]),
        2,
        &expect![[r#"
            error: the following required arguments were not provided:
              <--at <INSTANT>|--after <DURATION>|--cron <EXPRESSION>|--every <INTERVAL>|--local <TIME>|--calendar <RULE>>

            Usage: punctual arm [OPTIONS] --kind <KIND> <WHEN> <RUN> <TIMER_ID>

            For more information, try '--help'.
        "#]],
    );
    check_refused(
        &arm(&["--at", "2026-12-01T09:00:00Z", "--after", "PT1S"]),
        2,
        &expect![[r#"
            error: the argument '--at <INSTANT>' cannot be used with '--after <DURATION>'

            Usage: punctual arm [OPTIONS] --kind <KIND> <WHEN> <RUN> <TIMER_ID>

            For more information, try '--help'.
        "#]],
    );
    check_refused(
        &arm(&["--after", "PT1S", "--payload", "x", "--payload-base64", "eA=="]),
        2,
        &expect![[r#"
            error: the argument '--payload <TEXT>' cannot be used with '--payload-base64 <BASE64>'

            Usage: punctual arm [OPTIONS] --kind <KIND> <WHEN> <RUN> <TIMER_ID>

            For more information, try '--help'.
        "#]],
    );
}

#[test]
fn wrong_fields_of_an_arm_are_refused_by_name() {
    let arm = |more: &[&'static str]| [&["arm", "r", "t", "--after", "PT1S"], more].concat();
    check_refused(
        &arm(&["--kind", "0"]),
        2,
        &expect![[r#"
        error: --kind `0` is no kind number
          kinds have numbers from 1 to 239
    "#]],
    );
    check_refused(
        &arm(&["--kind", "1", "--header", "novalue"]),
        2,
        &expect![[r#"
        error: --header `novalue` is not NAME=VALUE
          write --header trace=abc
    "#]],
    );
    check_refused(
        &arm(&["--kind", "1", "--outbox", "novalue"]),
        2,
        &expect![[r#"
        error: --outbox `novalue` is not KEY=VALUE
          write --outbox stock/7=release, or --outbox =release for a record without a key
    "#]],
    );
    check_refused(
        &arm(&["--kind", "1", "--payload-base64", "%%"]),
        2,
        &expect![[r#"
        error: --payload-base64 is no base64: Invalid symbol 37, offset 0.
          the alphabet is A-Z a-z 0-9 + / with = at the end: base64 -w0 FILE writes it
    "#]],
    );
    check_refused(
        &arm(&["--kind", "1", "--payload-file", "/nowhere/body"]),
        1,
        &expect![[r#"
        error: --payload-file `/nowhere/body` cannot be read: No such file or directory (os error 2)
    "#]],
    );
    check_refused(
        &arm(&["--kind", "1", "--tenant", "a/b"]),
        2,
        &expect![[r#"
        error: --tenant: tenant `a/b` has a character outside A-Z a-z 0-9 . _ ~ -
    "#]],
    );
    check_refused(
        &arm(&["--kind", "1", "--correlation-id", ""]),
        2,
        &expect![[r#"
        error: a value is required for '--correlation-id <TEXT>' but none was supplied

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn wrong_values_are_refused_by_name() {
    check_refused(
        &["disarm", "", "t"],
        2,
        &expect![[r#"
        error: RUN: run `` is empty; give it 1 to 512 bytes
    "#]],
    );
    check_refused(
        &["pause", "r", ""],
        2,
        &expect![[r#"
        error: TIMER_ID: timer_id `` is empty; give it 1 to 512 bytes
    "#]],
    );
    check_refused(
        &["resume", "r", "t", "--generation", "7.5"],
        2,
        &expect![[r#"
        error: invalid value '7.5' for '--generation <N>': invalid digit found in string

        For more information, try '--help'.
    "#]],
    );
    check_refused(
        &["disarm", "r", "t", "--generation", "first"],
        2,
        &expect![[r#"
        error: invalid value 'first' for '--generation <N>': invalid digit found in string

        For more information, try '--help'.
    "#]],
    );
    check_refused(
        &["disarm", "r", "t", "--timeout", "10"],
        2,
        &expect![[r#"
        error: invalid value '10' for '--timeout <DURATION>': write a number with a unit, such as 10s or 1m

        For more information, try '--help'.
    "#]],
    );
    check_refused(
        &["watch", "--count", "0"],
        2,
        &expect![[r#"
        error: invalid value '0' for '--count <N>': 0 is not in 1..18446744073709551615

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn a_time_to_wait_stands_behind_an_equals_sign() {
    check_refused(
        &["disarm", "r", "t", "--wait", "5s"],
        2,
        &expect![[r#"
        error: unexpected argument '5s' found

          tip: write --wait=5s

        Usage: punctual disarm [OPTIONS] <RUN> <TIMER_ID>

        For more information, try '--help'.
    "#]],
    );
    check_refused(
        &["arm", "--wait", "5s", "r", "t", "--kind", "1", "--after", "PT1S"],
        2,
        &expect![[r#"
            error: unexpected argument 't' found

              tip: write --wait=5s

            Usage: punctual arm [OPTIONS] --kind <KIND> <WHEN> <RUN> <TIMER_ID>

            For more information, try '--help'.
        "#]],
    );
}

#[test]
fn numbers_of_topics_are_refused_by_their_flags() {
    check_refused(
        &["topics", "create", "--partitions", "0"],
        2,
        &expect![[r#"
        error: invalid value '0' for '--partitions <N>': 0 is not in 1..=10000

        For more information, try '--help'.
    "#]],
    );
    check_refused(
        &["topics", "create", "--replication", "0"],
        2,
        &expect![[r#"
        error: invalid value '0' for '--replication <N>': write 1 to 100, or -1 for the broker's own default

        For more information, try '--help'.
    "#]],
    );
    check_refused(
        &["topics", "create", "--bootstrap-servers", ""],
        2,
        &expect![[r#"
        error: a value is required for '--bootstrap-servers <SERVERS>' but none was supplied

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn waiting_needs_a_results_topic() {
    check_refused(
        &["disarm", "r", "t", "--wait", "--set", "topics.results="],
        2,
        &expect![[r#"
        error: --wait reads the results topic, and topics.results is empty
          set topics.results, here and where the service runs
    "#]],
    );
}

#[test]
fn watching_needs_a_kind_that_is_known() {
    check_refused(
        &["watch"],
        2,
        &expect![[r#"
        error: the configuration has no kinds, so there is no fired topic to watch
          give the configuration of the service with --config, or name the topic with --topic
    "#]],
    );
    check_refused(
        &["watch", "--kind", "fax", "--set", EMAIL],
        2,
        &expect![[r#"
        error: --kind `fax` is no kind of the configuration; it has email (1)
          give the configuration of the service with --config, or name the topic with --topic
    "#]],
    );
}

#[test]
fn o2_wrong_settings_are_refused_by_name() {
    check_refused(
        &["config", "validate", "--set", "kafka.grup=x"],
        2,
        &expect![[r#"
        error: kafka.grup: is no setting; did you mean `kafka.group`? (from flag --set)
    "#]],
    );
    check_refused(
        &["config", "validate", "--set", "kafka.properties.compresion.type=lz4"],
        2,
        &expect![[r#"
        error: kafka.properties.compresion.type: there is no librdkafka property `compresion.type`; see librdkafka's CONFIGURATION.md for their names (from flag --set)
    "#]],
    );
    check_refused(
        &["config", "validate", "--set", "kafka.properties.acks=1"],
        2,
        &expect![[r#"
        error: kafka.properties.acks: property `acks` cannot be set: exactly-once depends on its value; remove it (from flag --set)
    "#]],
    );
    check_refused(
        &["config", "print", "--config", "/nowhere/punctual.yaml"],
        2,
        &expect![[r#"
        error: --config: cannot read `/nowhere/punctual.yaml`: No such file or directory (os error 2); name a readable YAML file in UTF-8
    "#]],
    );
    check_refused(
        &["serve"],
        2,
        &expect![[r#"
        error: kinds: is empty; declare at least one kind, such as [{number: 1, name: email}] (from default)
    "#]],
    );
}

#[test]
fn t6_a_fired_topic_that_is_the_arm_topic_is_refused() {
    let kinds = "kinds=[{number: 1, name: email, fired_topic: timers.arm}]";
    check_refused(
        &["config", "validate", "--set", kinds],
        2,
        &expect![[r#"
        error: kinds[0].fired_topic: `timers.arm` is to be the fired topic of kind `email`, and topics.arm makes it the arm topic; give each a topic of its own (from flag --set)
    "#]],
    );
}
