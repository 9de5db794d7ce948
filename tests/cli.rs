//! The command line from outside: what a person types, reads, and gets wrong.
//!
//! Nothing here needs a broker; where one is meant to be missing, a port that nobody listens on stands for it.

#[path = "cli/own_handlers.rs"]
mod own_handlers;
#[path = "cli/refused.rs"]
mod refused;
#[path = "cli/secrets.rs"]
mod secrets;

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use assert_cmd::Command;
use expect_test::{Expect, expect};

const EMAIL: &str = "kinds=[{number: 1, name: email}]";

/// Longest run of a command that is to end soon.
const SOON: Duration = Duration::from_secs(20);

/// Runs the binary with nothing of our own environment that could change what it does.
fn punctual(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the binary is built beside its tests")
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("punctual"));
    command.env_clear().args(arguments).timeout(SOON);
    command
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("output is UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("errors are UTF-8")
}

/// Compares exit code and standard error of a command that is refused before anything is done.
fn check_refused(arguments: &[&str], code: i32, expected: &Expect) {
    let output = punctual(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
    assert_eq!(stdout(&output), "", "{arguments:?}");
    expected.assert_eq(&stderr(&output));
}

fn write(directory: &Path, text: &str) -> String {
    let path = directory.join("punctual.yaml");
    std::fs::write(&path, text).expect("the directory is ours");
    path.display().to_string()
}

#[test]
fn the_main_help_shows_commands_examples_and_exit_codes() {
    let output = punctual(&["--help"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    expect![[r#"
        Durable timers for Kafka: armed on a topic, fired exactly once, never early

        Usage: punctual <COMMAND>

        Commands:
          serve        Run the service: join the group, restore, fire
          arm          Arm a timer: at this instant, emit this
          disarm       Cancel a timer
          pause        Hold a timer: it stays, and does not fire until it is resumed
          resume       Let a paused timer go on
          disarm-run   Cancel all timers of a run
          seal-run     Cancel all timers of a run and refuse later ones
          watch        Show fired events as they come
          topics       Create or check the topics
          config       Show or check the configuration
          inspect      Look into a state directory, read-only, also beside a running process or after a
                       crash
          completions  Print a completion script for a shell

        Options:
          -h, --help     Print help
          -V, --version  Print version

        Examples:
          punctual topics create --config punctual.yaml
          punctual serve --config punctual.yaml
          punctual arm order-42 reminder --kind email --after PT30M --payload 'pay now' --wait
          punctual watch --kind email

        Exit codes:
          0  done
          1  failed: a broker away, a file that cannot be read
          2  the command line or the configuration is wrong; nothing was done
          3  done, and the answer is no: not found, rejected, sealed, skipped; topics have errors
          4  sent, and --wait saw no answer in time; the command may still be carried out
    "#]]
    .assert_eq(&stdout(&output));
}

#[test]
fn every_command_has_help_with_examples() {
    let verbs: [&[&str]; 12] = [
        &["serve"],
        &["arm"],
        &["disarm"],
        &["disarm-run"],
        &["seal-run"],
        &["watch"],
        &["topics", "create"],
        &["topics", "validate"],
        &["config", "print"],
        &["config", "validate"],
        &["inspect"],
        &["completions"],
    ];
    for verb in verbs {
        let output = punctual(&[verb, &["--help"]].concat());
        assert_eq!(output.status.code(), Some(0), "{verb:?}");
        let help = stdout(&output);
        assert!(help.contains("\nExamples:\n  "), "{verb:?}: {help}");
        assert!(help.lines().all(|line| line.chars().count() <= 110), "{verb:?}: {help}");
        let examples = help.split_once("\nExamples:\n").unwrap().1.lines().take_while(|line| !line.is_empty());
        let is_one = |line: &str| line.starts_with("  ") && line.contains("punctual ");
        assert!(examples.clone().all(is_one), "an example that wraps cannot be copied: {verb:?}: {help}");
    }
}

#[test]
fn the_version_is_that_of_the_package() {
    let output = punctual(&["--version"]);
    assert_eq!(stdout(&output), format!("punctual {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn no_command_is_answered_with_help() {
    let output = punctual(&[]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("Usage: punctual <COMMAND>"), "{}", stderr(&output));
}

#[test]
fn a_valid_configuration_is_said_to_be_valid() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let file = write(directory.path(), "instance: punctual-1\nkinds: [{number: 1, name: email}]\n");
    let output = punctual(&["config", "validate", "--config", &file]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), "valid: 1 kind\n".to_owned()));
}

#[test]
fn o1_flags_win_over_the_environment_and_that_over_the_file() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let file = write(directory.path(), "kafka: {group: file, bootstrap_servers: file}\nsource: file\n");
    let output = command(&["config", "print", "--set", "source=flag"])
        .env("PUNCTUAL_CONFIG", &file)
        .env("PUNCTUAL__KAFKA__GROUP", "0123456")
        .env("PUNCTUAL__SOURCE", "environment")
        .env("PUNCTUAL__KAFKA__PROPERTIES__SASL_PASSWORD", "hunter2")
        .output()
        .expect("the binary is built beside its tests");
    let printed = stdout(&output);
    let line = |key: &str| printed.lines().find(|line| line.trim_start().starts_with(key)).unwrap_or("").trim();
    assert_eq!(line("group:"), "group: \"0123456\"  # environment variable PUNCTUAL__KAFKA__GROUP");
    assert_eq!(line("source:"), "source: \"flag\"  # flag --set");
    assert!(line("bootstrap_servers:").starts_with("bootstrap_servers: file"), "{printed}");
    assert!(!printed.contains("hunter2"), "{printed}");
}

#[test]
fn an_unreachable_broker_is_an_error_in_bounded_time() {
    let verbs: [&[&str]; 4] = [
        &["arm", "r", "t", "--kind", "email", "--after", "PT1S"],
        &["watch", "--set", EMAIL],
        &["topics", "create"],
        &["topics", "validate"],
    ];
    for verb in verbs {
        let output = punctual(&[verb, &["--bootstrap-servers", "127.0.0.1:1", "--timeout", "500ms"]].concat());
        assert_eq!(output.status.code(), Some(1), "{verb:?} within {SOON:?}");
        assert_eq!(stdout(&output), "", "{verb:?}");
        let told = stderr(&output);
        assert!(told.starts_with("error: connecting to Kafka at 127.0.0.1:1: "), "{verb:?}: {told}");
        assert!(told.contains("Connection refused"), "{verb:?}: {told}");
    }
}

#[test]
fn completions_are_written_for_each_shell() {
    let marks = [("bash", "complete -F _punctual"), ("zsh", "#compdef punctual"), ("fish", "complete -c punctual")];
    for (shell, mark) in marks {
        let output = punctual(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{shell}");
        assert!(stdout(&output).contains(mark), "{shell}");
    }
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = std::process::Command::new(assert_cmd::cargo::cargo_bin!("punctual"))
        .args(["config", "print"])
        .stdout(writer)
        .output()
        .expect("the binary is built beside its tests");
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
}

#[test]
fn a_state_directory_that_is_none_is_refused() {
    check_refused(
        &["inspect", "/nowhere/state"],
        1,
        &expect![[r#"
        error: DIRECTORY `/nowhere/state` is not a directory
          name the state_dir of the configuration, or one partition's directory in it
    "#]],
    );
    let directory = tempfile::tempdir().expect("a directory for the test");
    let output = punctual(&["inspect", &directory.path().display().to_string()]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("holds no store"), "{}", stderr(&output));
}

#[test]
fn output_that_is_no_terminal_has_no_colours() {
    let output = punctual(&["--help"]);
    assert!(!stdout(&output).contains('\u{1b}'), "{}", stdout(&output));
    let output = punctual(&["arm"]);
    assert!(!stderr(&output).contains('\u{1b}'), "{}", stderr(&output));
}

#[test]
fn a_dry_run_shows_the_next_three_instants_and_sends_nothing() {
    let flags = ["--kind", "1", "--every", "P1M", "--anchor", "2099-01-31T08:00:00Z", "--zone", "Europe/Berlin"];
    let command = ["arm", "invoice-7", "monthly", "--dry-run"];
    let output = punctual(&[&command[..], &flags[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    expect![[r#"
        next 2099-01-31T08:00:00.000Z, 2099-01-31T09:00:00 in Europe/Berlin
        next 2099-02-28T08:00:00.000Z, 2099-02-28T09:00:00 in Europe/Berlin
        next 2099-03-31T07:00:00.000Z, 2099-03-31T09:00:00 in Europe/Berlin
    "#]]
    .assert_eq(&stdout(&output));
}
