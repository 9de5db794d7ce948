//! The page `docs/recipes.md`, run from top to bottom: its settings, its commands and the outcomes that it names.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use yaml_rust2::{Yaml, YamlLoader};

use crate::harness::broker::Broker;
use crate::harness::deployment::Deployment;
use crate::harness::reader::Received;
use crate::harness::wait;

const PAGE: &str = include_str!("../../docs/recipes.md");
const BOUND: Duration = Duration::from_secs(40);

/// A fenced block: its language, what stands behind that, and its lines.
struct Block<'a> {
    language: &'a str,
    outcome: &'a str,
    text: &'a str,
}

fn blocks() -> Vec<Block<'static>> {
    let fenced = PAGE.split("```").skip(1).step_by(2);
    let block = |fence: &'static str| {
        let (head, text) = fence.split_once('\n').unwrap();
        let (language, outcome) = head.split_once(' ').unwrap_or((head, ""));
        Block { language, outcome, text }
    };
    fenced.map(block).collect()
}

fn json_of(yaml: &Yaml) -> Value {
    match yaml {
        Yaml::Hash(entries) => {
            entries.iter().map(|(key, value)| (key.as_str().unwrap().to_owned(), json_of(value))).collect()
        }
        Yaml::Array(items) => items.iter().map(json_of).collect(),
        Yaml::Integer(number) => json!(number),
        Yaml::Boolean(flag) => json!(flag),
        text @ (Yaml::String(_) | Yaml::Real(_) | Yaml::Alias(_) | Yaml::Null | Yaml::BadValue) => {
            json!(text.as_str().unwrap())
        }
    }
}

/// Splits a line as a shell does, as far as the page needs it.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for character in line.chars() {
        match character {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            _ => words.last_mut().unwrap().push(character),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Runs a line of the tool; an answer that is wanted must be no rejection.
fn run_tool(deployment: &Deployment, arguments: &[String]) {
    let mut tool = Command::new(env!("CARGO_BIN_EXE_punctual"));
    tool.args(arguments).env("PUNCTUAL_CONFIG", deployment.config());
    if !arguments.iter().any(|argument| argument == "--dry-run") {
        tool.arg("--wait=30s");
    }
    let output = tool.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Sends what `kcat` would send.
fn run_kcat(deployment: &Deployment, value: &str, arguments: &[String]) {
    let (mut key, mut headers) = (None, Vec::new());
    for pair in arguments.windows(2) {
        match pair[0].as_str() {
            "-k" => key = Some(pair[1].as_str()),
            "-H" => headers.push(pair[1].split_once('=').unwrap()),
            _ => {}
        }
    }
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, Some(value.as_bytes()))).collect();
    let commands = deployment.commands();
    commands.send_record(key, Some(value.as_bytes()), &headers);
    commands.flush();
}

fn run_console(deployment: &Deployment, text: &str) {
    for line in text.lines() {
        let (input, line) = line.split_once(" | ").unwrap_or(("", line));
        let words = words(line);
        match words[0].as_str() {
            "punctual" => run_tool(deployment, &words[1..]),
            "kcat" => run_kcat(deployment, input, &words),
            other => panic!("the page runs `{other}`, which this test does not know"),
        }
    }
}

#[test]
fn every_command_of_the_page_does_what_the_page_says() {
    let blocks = blocks();
    let settings = blocks.iter().find(|block| block.language == "yaml").unwrap();
    let settings = json_of(&YamlLoader::load_from_str(settings.text).unwrap()[0]);
    let deployment = Deployment::with(Broker::shared(), "recipes", |all| {
        all["kinds"] = settings["kinds"].clone();
        all["calendars"] = settings["calendars"].clone();
    });
    let (fired, results) = (deployment.reader(&["fired.refresh", "fired.job"]), deployment.reader(&["results"]));
    let process = deployment.serve("a");
    let commands = deployment.commands();
    let mut sent = 0;
    for block in &blocks {
        match block.language {
            "yaml" => {}
            "console" => run_console(&deployment, block.text),
            "json" => {
                let mut command: Value = serde_json::from_str(block.text).unwrap();
                let correlation = format!("c-{sent}");
                command["correlation_id"] = json!(correlation);
                commands.send_json(command["run"].as_str().unwrap(), &command);
                commands.flush();
                let answer = wait::until(BOUND, block.text, || {
                    // Those to the command line are protobuf.
                    let mut answers = results.records();
                    answers.retain(|answer| answer.value.as_ref().is_some_and(|value| value.starts_with(b"{")));
                    let mut answers = answers.iter().map(Received::json);
                    answers.find(|answer| answer["correlation_id"] == correlation.as_str())
                });
                assert_eq!(answer["outcome"], block.outcome, "{}: {answer}", block.text);
                sent += 1;
            }
            other => panic!("the page has a block of `{other}`, which this test does not know"),
        }
    }
    assert!(sent > 12, "only {sent} commands are on the page");
    let payloads = || {
        let records = fired.records();
        let mut payloads: Vec<String> = records.iter().map(|event| event.text().to_owned()).collect();
        payloads.sort();
        payloads
    };
    wait::until_true(BOUND, "what is due in seconds fires", || payloads().len() >= 3);
    assert_eq!(
        payloads(),
        ["send invoice 7", "version 1", "version 2"],
        "the last of the burst, and the first of the other"
    );
    wait::until_true(BOUND, "the others are pending", || (process.metric("punctual_pending_timers") - 3.0).abs() < 0.5);
}
