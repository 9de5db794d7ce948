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
mod watch;
mod when;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use self::args::{CommandLine, ConfigVerb, TopicsVerb, Verb};
use self::failure::Failure;
use self::output::{Format, Output, colours_wanted};
use crate::time::Clock;
use crate::time::system::SystemClock;

/// Runs a command line and returns its exit code. Help, version and mistakes of use are answered and end the process.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let line = CommandLine::parse_from(arguments);
    match carry_out(&line.verb) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(&mut io::stderr()),
    }
}

fn carry_out(verb: &Verb) -> Result<(), Failure> {
    if let Verb::Serve(args) = verb {
        // Before standard output is taken: a service has no answer to write.
        let served = crate::service::serve(&setup::load(args)?);
        return served.map_err(|error| Failure::failed(format!("{error:#}")));
    }
    let clock = SystemClock;
    let mut stdout = io::stdout().lock();
    let mut out = Output::new(format(verb), &mut stdout, colours_wanted());
    match verb {
        Verb::Serve(_) => Ok(()),
        Verb::Arm(args) => send::arm(args, &clock, &mut out),
        Verb::Disarm(args) => send::disarm(args, &clock, &mut out),
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

fn format(verb: &Verb) -> Format {
    match verb {
        Verb::Arm(args) => args.send.output,
        Verb::Disarm(args) => args.send.output,
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
