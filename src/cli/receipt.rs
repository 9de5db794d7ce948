//! What is shown of a command that was sent, and of its answer.
//!
//! Owns [`Receipt`] and which answers are a yes. Never talks to Kafka.

use serde_json::{Value, json};

use super::failure::Failure;
use super::output::{Cell, Format, Output, Tone};
use crate::position::{Offset, Partition};
use crate::timer::command::Command;
use crate::wire::answer::Received;

/// The outcomes that are what was asked for.
const YES: [&str; 9] =
    ["armed", "already_armed", "replaced", "disarmed", "run_disarmed", "run_sealed", "paused", "resumed", "not_paused"];

/// A command that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Receipt {
    /// The topic.
    pub(super) topic: String,
    /// The partition.
    pub(super) partition: Partition,
    /// The offset.
    pub(super) offset: Offset,
    /// The command.
    pub(super) command: Command,
}

impl Receipt {
    /// Returns whether the answer is what was asked for, or as good: a timer that is armed already is armed, and one that
    /// is not paused goes on. An outcome that
    /// only a newer service knows is no yes.
    pub(super) fn is_yes(answer: &Received) -> bool {
        YES.contains(&answer.outcome.as_str())
    }

    /// Shows what was sent, and the answer if there is one.
    ///
    /// # Errors
    /// When the output is closed.
    pub(super) fn show(&self, answer: Option<&Received>, out: &mut Output<'_>) -> Result<(), Failure> {
        match out.format {
            Format::Json => out.json(&self.to_json(answer))?,
            Format::Table => self.show_table(answer, out)?,
        }
        Ok(())
    }

    fn subject(&self) -> String {
        let action = &self.command.action;
        action.timer().map_or_else(|| action.run().to_string(), ToString::to_string)
    }

    fn show_table(&self, answer: Option<&Received>, out: &mut Output<'_>) -> Result<(), Failure> {
        let Some(answer) = answer else {
            let Self { topic, partition, offset, .. } = self;
            out.line(&format!("sent {} to {topic}/{partition} at offset {offset}", self.subject()))?;
            return Ok(());
        };
        let tone = if Self::is_yes(answer) { Tone::Good } else { Tone::Bad };
        let row = [Cell::toned(answer.outcome.replace('_', " "), tone), self.subject().into(), detail(answer).into()];
        out.row(&row, &[0, 0, 0])?;
        Ok(())
    }

    fn to_json(&self, answer: Option<&Received>) -> Value {
        let action = &self.command.action;
        let mut value = json!({
            "topic": self.topic,
            "partition": self.partition.0,
            "offset": self.offset.0,
            "tenant": action.run().tenant.as_str(),
            "run": action.run().run.as_str(),
            "timer_id": action.timer().map(|timer| timer.id.as_str()),
            "correlation_id": self.command.reply.as_ref().map(|reply| reply.correlation_id.as_str()),
        });
        if let (Some(answer), Some(fields)) = (answer, value.as_object_mut()) {
            fields.insert("answer".to_owned(), answer_json(answer));
        }
        value
    }
}

/// Returns what the answer tells beside its name.
fn detail(answer: &Received) -> String {
    let told = [
        answer.generation.map(|generation| format!("generation {generation}")),
        answer.due.map(|due| format!("due {due}")),
        answer.count.map(|count| format!("timers cancelled: {count}")),
        answer.reason.clone(),
        answer.detail.clone(),
    ];
    told.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn answer_json(answer: &Received) -> Value {
    json!({
        "outcome": answer.outcome,
        "generation": answer.generation,
        "due": answer.due.map(|due| due.to_string()),
        "count": answer.count,
        "reason": answer.reason,
        "detail": answer.detail,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;
    use crate::timer::command::{Action, Encoding, Reply};
    use crate::timer::identity::{Run, RunKey, Tenant, TimerId, TimerKey};

    fn answer(outcome: &str) -> Received {
        Received {
            correlation_id: "c".to_owned(),
            tenant: "acme".to_owned(),
            run: "order-42".to_owned(),
            timer_id: Some("reminder".to_owned()),
            outcome: outcome.to_owned(),
            generation: None,
            due: None,
            count: None,
            reason: None,
            detail: None,
        }
    }

    fn shown(format: Format, answer: Option<&Received>) -> String {
        let run = RunKey { tenant: Tenant::parse("acme").unwrap(), run: Run::parse("order-42").unwrap() };
        let key = TimerKey { run, id: TimerId::parse("reminder").unwrap() };
        let reply = Reply { correlation_id: "c".to_owned(), encoding: Encoding::Protobuf };
        let receipt = Receipt {
            topic: "timers.arm".to_owned(),
            partition: Partition(3),
            offset: Offset(17),
            command: Command { reply: Some(reply), action: Action::Disarm { key, generation: None } },
        };
        let mut sink = Vec::new();
        receipt.show(answer, &mut Output::new(format, &mut sink, false)).unwrap();
        String::from_utf8(sink).unwrap()
    }

    #[test]
    fn without_an_answer_the_place_is_shown() {
        assert_eq!(shown(Format::Table, None), "sent acme/order-42/reminder to timers.arm/3 at offset 17\n");
    }

    #[test]
    fn an_answer_is_shown_in_words() {
        let armed = Received { generation: Some(7), due: Some(Timestamp::EPOCH), ..answer("already_armed") };
        assert_eq!(
            shown(Format::Table, Some(&armed)),
            "already armed  acme/order-42/reminder  generation 7, due 1970-01-01T00:00:00.000Z\n"
        );
    }

    #[test]
    fn what_is_remembered_of_an_id_is_shown() {
        let fired = Received { generation: Some(7), ..answer("already_fired") };
        assert_eq!(shown(Format::Table, Some(&fired)), "already fired  acme/order-42/reminder  generation 7\n");
        assert_eq!(
            shown(Format::Table, Some(&answer("already_disarmed"))),
            "already disarmed  acme/order-42/reminder\n"
        );
    }

    #[test]
    fn an_answer_is_data_in_json() {
        let rejected = Received { reason: Some("unknown_kind".to_owned()), ..answer("rejected") };
        let shown: Value = serde_json::from_str(&shown(Format::Json, Some(&rejected))).unwrap();
        assert_eq!(shown["answer"]["outcome"], "rejected");
        assert_eq!(shown["answer"]["reason"], "unknown_kind");
        assert_eq!(shown["offset"], 17);
        assert_eq!(shown["timer_id"], "reminder");
    }

    #[test]
    fn an_outcome_that_is_not_known_is_no_yes() {
        assert!(Receipt::is_yes(&answer("armed")), "what was asked for");
        assert!(Receipt::is_yes(&answer("not_paused")), "as good as resumed");
        assert!(!Receipt::is_yes(&answer("ended")), "nothing goes on");
        assert!(!Receipt::is_yes(&answer("not_found")), "nothing to disarm");
        assert!(!Receipt::is_yes(&answer("already_fired")), "nothing was armed");
        assert!(!Receipt::is_yes(&answer("too_late")), "nothing was disarmed");
        assert!(!Receipt::is_yes(&answer("unknown outcome 99")), "from a newer service");
    }
}
