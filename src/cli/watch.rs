//! `punctual watch`: fired events as they come.
//!
//! Owns the loop that reads and shows. Never commits an offset and joins no group, so watching disturbs nobody.
//! Keeps: only committed events are shown, each line is flushed, and the command ends at `--count`, at `--for` or when asked.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::Duration;

use super::args::WatchArgs;
use super::event::Event;
use super::failure::Failure;
use super::interrupt::Interrupt;
use super::output::{Format, Output};
use super::setup::{self, Setup};
use crate::config::settings::Config;
use crate::log::kafka::tool::reader::{Reader, Start};
use crate::time::Clock;
use crate::timer::kind::KindRef;

/// Longest wait for one record, so that the command ends soon when it is asked to.
const POLL_MAX: Duration = Duration::from_millis(100);

/// Shows fired events until the bound that was given, or until it is interrupted.
///
/// # Errors
/// When a kind is not known, a topic does not exist, or the broker does not answer at the start.
pub(super) fn run(args: &WatchArgs, clock: &dyn Clock, out: &mut Output<'_>) -> Result<(), Failure> {
    let setup = Setup::load(&args.kafka)?;
    let topics = topics(args, &setup.config)?;
    let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
    let connection = setup.connect()?;
    let start = if args.from_beginning { Start::Beginning } else { Start::End };
    let interrupt = Interrupt::listen()?;
    let reader = Reader::open(&connection, &topics, start)?;
    tell(args, &format!("watching {}; Ctrl-C ends", topics.join(", ")));
    let shown = show(args, &reader, &interrupt, clock, out)?;
    tell(args, &format!("events shown: {shown}"));
    Ok(())
}

/// Notes for people go beside the output, not into it.
fn tell(args: &WatchArgs, note: &str) {
    if args.output == Format::Table {
        // Nobody is left to tell when stderr is closed.
        let _ = writeln!(io::stderr(), "{note}");
    }
}

fn show(
    args: &WatchArgs,
    reader: &Reader,
    interrupt: &Interrupt,
    clock: &dyn Clock,
    out: &mut Output<'_>,
) -> Result<u64, Failure> {
    if out.format == Format::Table {
        Event::show_headings(out)?;
    }
    let end = args.duration.map(|duration| clock.boot() + duration);
    let (mut shown, mut is_troubled) = (0, false);
    while args.count.is_none_or(|count| shown < count) && !interrupt.is_asked() {
        let left = end.map_or(POLL_MAX, |end| end.saturating_sub(clock.boot()));
        if left.is_zero() {
            break;
        }
        if let Some(record) = reader.next(left.min(POLL_MAX))? {
            Event::of(record).show(out)?;
            shown += 1;
        }
        if let Some(trouble) = reader.trouble().filter(|_| !is_troubled) {
            is_troubled = true;
            let _ = writeln!(io::stderr(), "warning: {trouble}; still trying");
        }
    }
    Ok(shown)
}

fn topics(args: &WatchArgs, config: &Config) -> Result<BTreeSet<String>, Failure> {
    let mut topics: BTreeSet<String> = args.topics.iter().cloned().collect();
    if args.kinds.is_empty() && topics.is_empty() {
        topics.extend(config.topics.fired.values().cloned());
    }
    let registry = config.registry();
    for text in &args.kinds {
        let number = match setup::kind_ref(text)? {
            KindRef::Number(number) => Some(number),
            KindRef::Name(name) => registry.by_name(&name).map(|kind| kind.number),
        };
        let Some(topic) = number.and_then(|number| config.topics.fired.get(&number)) else {
            let known: Vec<String> = registry.iter().map(|kind| format!("{} ({})", kind.name, kind.number)).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(Failure::usage(format!("--kind `{text}` is no kind of the configuration; it has {known}"))
                .with_remedy("give the configuration of the service with --config, or name the topic with --topic"));
        };
        topics.insert(topic.clone());
    }
    if topics.is_empty() {
        return Err(Failure::usage("the configuration has no kinds, so there is no fired topic to watch")
            .with_remedy("give the configuration of the service with --config, or name the topic with --topic"));
    }
    Ok(topics)
}
