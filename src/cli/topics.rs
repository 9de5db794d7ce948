//! `punctual topics create` and `validate`.
//!
//! Owns what is shown of topics. Never decides what is right: that is in `log::kafka::topics`.

use serde_json::{Value, json};

use super::failure::{Code, Failure};
use super::output::{Cell, Format, Output, Tone};
use super::setup::Setup;
use super::topics_args::{TopicsArgs, TopicsCreateArgs};
use crate::log::kafka::topics::findings::{Finding, Severity};
use crate::log::kafka::topics::plan::Layout;
use crate::log::kafka::topics::{Creation, Done, Topics};

/// Creates what is missing and shows what was done.
///
/// # Errors
/// When a setting is wrong, no broker answers, or a topic could not be created.
pub(super) fn create(args: &TopicsCreateArgs, out: &mut Output<'_>) -> Result<(), Failure> {
    let mut kafka = args.topics.kafka.clone();
    kafka.settings.set.extend(args.partitions.map(|number| format!("topics.partitions={number}")));
    kafka.settings.set.extend(args.replication.map(|number| format!("topics.replication_factor={number}")));
    let setup = Setup::load(&kafka)?;
    let topics = &setup.config.topics;
    let layout = Layout { partitions: topics.partitions, replication: i32::from(topics.replication_factor) };
    let creations = connect(&setup)?.create(&setup.config.planned_topics(), layout)?;
    match out.format {
        Format::Json => {
            for creation in &creations {
                out.json(&creation_json(creation))?;
            }
        }
        Format::Table => {
            let rows: Vec<_> = creations.iter().map(creation_row).collect();
            out.table(["TOPIC", "FOR", "DONE", "PARTITIONS", "DETAIL"], &rows)?;
        }
    }
    let failed = creations.iter().filter(|creation| matches!(creation.done, Done::Failed { .. })).count();
    if failed > 0 {
        return Err(Failure::failed(format!("{failed} of {} topics could not be created", creations.len())));
    }
    Ok(())
}

/// Checks the topics and shows what is wrong with them.
///
/// # Errors
/// When a setting is wrong or no broker answers; [`Code::Negative`] when a topic has an error.
pub(super) fn validate(args: &TopicsArgs, out: &mut Output<'_>) -> Result<(), Failure> {
    let setup = Setup::load(&args.kafka)?;
    let planned = setup.config.planned_topics();
    let inspection = connect(&setup)?.inspect(&planned, &setup.config.limits())?;
    match out.format {
        Format::Json => {
            for finding in &inspection.findings {
                out.json(&finding_json(finding))?;
            }
        }
        Format::Table if inspection.findings.is_empty() => {
            out.line(&format!("{} topics, nothing wrong", planned.len()))?;
        }
        Format::Table => {
            for finding in &inspection.findings {
                show_finding(finding, out)?;
            }
        }
    }
    if inspection.errors().next().is_some() { Err(Failure::Answered(Code::Negative)) } else { Ok(()) }
}

fn connect(setup: &Setup) -> Result<Topics, Failure> {
    let kafka = &setup.config.kafka;
    Ok(Topics::new(&kafka.bootstrap_servers, &kafka.properties, setup.timeout)?)
}

fn creation_row(creation: &Creation) -> [Cell; 5] {
    let (done, tone, partitions, detail) = match &creation.done {
        Done::Existed { partitions } => ("existed", Tone::Plain, partitions.to_string(), String::new()),
        Done::Created(spec) => {
            let config = spec.config.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>();
            ("created", Tone::Good, spec.partitions.to_string(), config.join(" "))
        }
        Done::Failed { detail } => ("failed", Tone::Bad, "-".to_owned(), detail.clone()),
    };
    let (topic, role) = (&creation.topic, &creation.role);
    [topic.into(), role.into(), Cell::toned(done, tone), partitions.into(), detail.into()]
}

fn creation_json(creation: &Creation) -> Value {
    let (topic, role) = (&creation.topic, &creation.role);
    match &creation.done {
        Done::Existed { partitions } => {
            json!({"topic": topic, "for": role, "done": "existed", "partitions": partitions})
        }
        Done::Created(spec) => {
            let config: serde_json::Map<String, Value> =
                spec.config.iter().map(|(key, value)| ((*key).to_owned(), Value::from(value.as_str()))).collect();
            json!({"topic": topic, "for": role, "done": "created", "partitions": spec.partitions,
                   "replication": spec.replication, "config": config})
        }
        Done::Failed { detail } => json!({"topic": topic, "for": role, "done": "failed", "detail": detail}),
    }
}

fn show_finding(finding: &Finding, out: &mut Output<'_>) -> Result<(), Failure> {
    let tone = match finding.severity {
        Severity::Error => Tone::Bad,
        Severity::Warning => Tone::Warning,
    };
    let Finding { topic, key, found, expected, remedy, .. } = finding;
    let judgement = format!("{key} is {found}, expected {expected}");
    out.row(&[Cell::toned(finding.severity.to_string(), tone), topic.into(), judgement.into()], &[7, 0, 0])?;
    out.row(&["".into(), remedy.into()], &[7, 0])?;
    Ok(())
}

fn finding_json(finding: &Finding) -> Value {
    json!({
        "severity": finding.severity.to_string(),
        "topic": finding.topic,
        "key": finding.key,
        "found": finding.found,
        "expected": finding.expected,
        "remedy": finding.remedy,
    })
}
