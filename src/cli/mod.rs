//! The command line.
//!
//! Owns what a person types and reads: [`args`] is the first, [`output`] and [`failure`] the second, and a file per command
//! is between them. Never does what a layer below can do. Keeps: standard output has the answer and nothing else, standard
//! error everything else; the exit code is one of [`failure::Code`].

pub mod args;
pub mod failure;
pub mod output;

mod config;
mod event;
mod inspect;
mod interrupt;
mod receipt;
mod send;
mod setup;
mod topics;
mod topics_args;
mod upcoming;
mod watch;
mod when;
mod when_args;

use std::ffi::OsString;
use std::io::{self, Write};

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use self::args::{CommandLine, ConfigVerb, Verb};
use self::failure::Failure;
use self::output::{Format, Output, colours_wanted};
use self::topics_args::TopicsVerb;
use crate::telemetry::logging;
use crate::time::Clock;
use crate::time::system::SystemClock;

/// Runs a command line and ends the process with its exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ! {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let line = match CommandLine::try_parse_from(&arguments) {
        Ok(line) => line,
        Err(error) => with_meant(error, &arguments).exit(),
    };
    match carry_out(&line.verb) {
        Ok(()) => leave(0),
        Err(failure) => leave(failure.report(&mut io::stderr())),
    }
}

/// Ends the process without the handlers of `exit`. A client of Kafka that nobody waits for, for its broker may be gone, still
/// has threads; OpenSSL frees under their feet what they use, and the process would die of it.
fn leave(code: u8) -> ! {
    // As at any end of a process: nobody is left to tell when standard output is closed.
    let _ = io::stdout().flush();
    signal_hook::low_level::exit(i32::from(code))
}

/// Adds what was probably meant: `--wait` takes its time behind an equals sign, for without one it needs none.
fn with_meant(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let is_wait_with_time = |pair: &[OsString]| match pair {
        [wait, time] => wait == "--wait" && time.to_str().is_some_and(|time| humantime::parse_duration(time).is_ok()),
        _ => false,
    };
    if error.kind() == ErrorKind::UnknownArgument
        && let Some([_, time]) = arguments.windows(2).find(|pair| is_wait_with_time(pair))
    {
        let tip = StyledStr::from(format!("write --wait={}", time.display()));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

fn carry_out(verb: &Verb) -> Result<(), Failure> {
    if let Verb::Serve(args) = verb {
        // Before standard output is taken: a service has no answer to write.
        let served = crate::service::serve(&setup::load_valid(args)?);
        return served.map_err(|error| Failure::failed(format!("{error:#}")));
    }
    log_if_asked()?;
    let clock = SystemClock;
    let mut stdout = io::stdout().lock();
    let mut out = Output::new(format(verb), &mut stdout, colours_wanted());
    match verb {
        Verb::Serve(_) => Ok(()),
        Verb::Arm(args) => send::arm(args, &clock, &mut out),
        Verb::Disarm(args) => send::disarm(args, &clock, &mut out),
        Verb::Pause(args) => send::pause(args, &clock, &mut out),
        Verb::Resume(args) => send::resume(args, &clock, &mut out),
        Verb::DisarmRun(args) => send::disarm_run(args, &clock, &mut out),
        Verb::SealRun(args) => send::seal_run(args, &clock, &mut out),
        Verb::Watch(args) => watch::run(args, &clock, &mut out),
        Verb::Topics(TopicsVerb::Create(args)) => topics::create(args, &mut out),
        Verb::Topics(TopicsVerb::Validate(args)) => topics::validate(args, &mut out),
        Verb::Config(ConfigVerb::Print(args)) => config::print(args, &mut out),
        Verb::Config(ConfigVerb::Validate(args)) => config::validate(args, &mut out),
        Verb::Inspect(args) => inspect::run(args, clock.wall(), &mut out),
        Verb::Completions { shell } => completions(*shell),
    }
}

/// A tool logs nothing, unless somebody wants to see what its client does.
fn log_if_asked() -> Result<(), Failure> {
    match std::env::var("RUST_LOG") {
        Ok(filter) if !filter.trim().is_empty() => logging::install(logging::Format::Human, "error", Some(&filter))
            .map_err(|error| Failure::usage(error.to_string())),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn format(verb: &Verb) -> Format {
    match verb {
        Verb::Arm(args) => args.send.output,
        Verb::Disarm(args) | Verb::Pause(args) | Verb::Resume(args) => args.send.output,
        Verb::DisarmRun(args) => args.send.output,
        Verb::SealRun(args) => args.send.output,
        Verb::Watch(args) => args.output,
        Verb::Topics(TopicsVerb::Create(args)) => args.topics.output,
        Verb::Topics(TopicsVerb::Validate(args)) => args.output,
        Verb::Inspect(args) => args.output,
        Verb::Serve(_) | Verb::Config(_) | Verb::Completions { .. } => Format::Table,
    }
}

fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    // Written in one piece: the generator itself panics when the reader has gone.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), "punctual", &mut script);
    Ok(io::stdout().write_all(&script)?)
}
