//! The command line as it is typed.
//!
//! Owns the names of commands and flags, and their help. Never does what they say: that is in a file per command.
//! Keeps: each command's help ends with examples that work as they stand.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

use super::output::Format;
use super::topics_args::TopicsVerb;
use super::when_args::{ScheduleArgs, WhenArgs};

const ABOUT_EXAMPLES: &str = "\
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
  4  sent, and --wait saw no answer in time; the command may still be carried out";

/// Durable timers for Kafka: armed on a topic, fired exactly once, never early.
#[derive(Debug, Parser)]
#[command(name = "punctual", version, about, max_term_width = 110, after_help = ABOUT_EXAMPLES)]
#[command(subcommand_required = true, arg_required_else_help = true, disable_help_subcommand = true)]
pub struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run the service: join the group, restore, fire
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(SettingsArgs),
    /// Arm a timer: at this instant, emit this
    #[command(after_help = ARM_EXAMPLES, override_usage = ARM_USAGE)]
    Arm(Box<ArmArgs>),
    /// Cancel a timer
    #[command(after_help = DISARM_EXAMPLES)]
    Disarm(TimerArgs),
    /// Hold a timer: it stays, and does not fire until it is resumed
    #[command(after_help = PAUSE_EXAMPLES)]
    Pause(TimerArgs),
    /// Let a paused timer go on
    #[command(after_help = RESUME_EXAMPLES)]
    Resume(TimerArgs),
    /// Cancel all timers of a run
    #[command(after_help = DISARM_RUN_EXAMPLES)]
    DisarmRun(DisarmRunArgs),
    /// Cancel all timers of a run and refuse later ones
    #[command(after_help = SEAL_RUN_EXAMPLES)]
    SealRun(SealRunArgs),
    /// Show fired events as they come
    #[command(after_help = WATCH_EXAMPLES)]
    Watch(WatchArgs),
    /// Create or check the topics
    #[command(subcommand)]
    Topics(TopicsVerb),
    /// Show or check the configuration
    #[command(subcommand)]
    Config(ConfigVerb),
    /// Look into a state directory, read-only, also beside a running process or after a crash
    #[command(after_help = INSPECT_EXAMPLES)]
    Inspect(InspectArgs),
    /// Print a completion script for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell
        shell: Shell,
    },
}

const SERVE_EXAMPLES: &str = "\
Examples:
  punctual serve --config punctual.yaml
  punctual serve --config punctual.yaml --set instance=punctual-1 --set state_dir=/tmp/p1
  PUNCTUAL__KAFKA__BOOTSTRAP_SERVERS=kafka:9092 punctual serve --config punctual.yaml";

/// Where settings come from.
#[derive(Clone, Debug, Args)]
pub struct SettingsArgs {
    /// Configuration file, YAML; without one the defaults hold
    #[arg(long, value_name = "FILE", env = "PUNCTUAL_CONFIG", help_heading = "Settings")]
    pub config: Option<PathBuf>,
    /// Set one key, over file and environment; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", help_heading = "Settings")]
    pub set: Vec<String>,
}

/// How to reach Kafka.
#[derive(Clone, Debug, Args)]
pub struct KafkaArgs {
    /// Settings.
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// Brokers to start from, host:port, separated by commas, over the configuration
    #[arg(long, value_name = "SERVERS", value_parser = NonEmptyStringValueParser::new(), help_heading = "Settings")]
    pub bootstrap_servers: Option<String>,
    /// Longest time for each request to Kafka
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration, help_heading = "Settings")]
    pub timeout: Duration,
}

/// What all commands to the service have in common.
#[derive(Clone, Debug, Args)]
pub struct SendArgs {
    /// Kafka.
    #[command(flatten)]
    pub kafka: KafkaArgs,
    /// Tenant of the run
    #[arg(long, default_value = "default")]
    pub tenant: String,
    /// Text that the answer carries back; drawn at random for --wait
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub correlation_id: Option<String>,
    /// Wait for the answer on the results topic, for so long
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true, default_missing_value = "10s",
          value_parser = duration)]
    pub wait: Option<Duration>,
    /// Form of the output: columns for people, or one JSON value a line
    #[arg(short, long, value_name = "table|json", default_value = "table", hide_possible_values = true)]
    pub output: Format,
}

const ARM_USAGE: &str = "punctual arm [OPTIONS] --kind <KIND> <WHEN> <RUN> <TIMER_ID>";

const ARM_EXAMPLES: &str = "\
Examples:
  punctual arm order-42 reminder --kind email --at 2026-12-01T09:00:00Z --payload 'pay now'
  punctual arm order-42 reminder --kind 1 --after PT30M --payload-file body.bin --replace --wait
  punctual arm report daily --kind email --cron '0 9 * * MON-FRI' --zone Europe/Berlin --dry-run
  punctual arm order-42 t2 --kind email --after P1D --outbox 'stock/7=release' --wait=30s
  echo hello | punctual arm order-42 t3 --kind email --after PT5S --payload-file -";

/// Flags of `arm`.
#[derive(Clone, Debug, Args)]
pub struct ArmArgs {
    /// Run that owns the timer, such as an order or a session
    pub run: String,
    /// Name of the timer inside its run
    pub timer_id: String,
    /// Kind of the timer, by number or by name
    #[arg(long)]
    pub kind: String,
    /// When.
    #[command(flatten)]
    pub when: WhenArgs,
    /// What goes with it.
    #[command(flatten)]
    pub schedule: ScheduleArgs,
    /// Payload.
    #[command(flatten)]
    pub payload: PayloadArgs,
    /// Key of the fired record [default: TENANT/RUN]
    #[arg(long, value_name = "TEXT")]
    pub key: Option<String>,
    /// Header of the fired record; may be repeated
    #[arg(long = "header", value_name = "NAME=VALUE")]
    pub headers: Vec<String>,
    /// Record that the fire emits beside its event; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub outbox: Vec<String>,
    /// Replace a timer that is armed already instead of keeping it
    #[arg(long)]
    pub replace: bool,
    /// The rest.
    #[command(flatten)]
    pub send: SendArgs,
}

/// The value of the fired record.
#[derive(Clone, Debug, Args)]
#[group(required = false, multiple = false)]
pub struct PayloadArgs {
    /// Value of the fired record, text
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub payload: Option<String>,
    /// Value of the fired record, from a file; - is standard input
    #[arg(long, value_name = "FILE")]
    pub payload_file: Option<PathBuf>,
    /// Value of the fired record, base64
    #[arg(long, value_name = "BASE64")]
    pub payload_base64: Option<String>,
}

const DISARM_EXAMPLES: &str = "\
Examples:
  punctual disarm order-42 reminder
  punctual disarm order-42 reminder --generation 7 --wait
  punctual disarm order-42 reminder --tenant acme --wait --output json";

const PAUSE_EXAMPLES: &str = "\
Examples:
  punctual pause order-42 reminder
  punctual pause order-42 reminder --generation 7 --wait";

const RESUME_EXAMPLES: &str = "\
Examples:
  punctual resume order-42 reminder --wait
  punctual resume order-42 reminder --tenant acme --wait --output json";

/// Flags of `disarm`, `pause` and `resume`: what is about one timer.
#[derive(Clone, Debug, Args)]
pub struct TimerArgs {
    /// Run that owns the timer
    pub run: String,
    /// Name of the timer inside its run
    pub timer_id: String,
    /// Only this version of the timer
    #[arg(long, value_name = "N")]
    pub generation: Option<u64>,
    /// The rest.
    #[command(flatten)]
    pub send: SendArgs,
}

const DISARM_RUN_EXAMPLES: &str = "\
Examples:
  punctual disarm-run order-42
  punctual disarm-run order-42 --tenant acme --wait";

/// Flags of `disarm-run`.
#[derive(Clone, Debug, Args)]
pub struct DisarmRunArgs {
    /// Run whose timers are cancelled
    pub run: String,
    /// The rest.
    #[command(flatten)]
    pub send: SendArgs,
}

const SEAL_RUN_EXAMPLES: &str = "\
Examples:
  punctual seal-run order-42
  punctual seal-run order-42 --retention P7D --wait";

/// Flags of `seal-run`.
#[derive(Clone, Debug, Args)]
pub struct SealRunArgs {
    /// Run that is closed
    pub run: String,
    /// How long the seal holds, ISO 8601: P7D [default: for ever]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub retention: Option<String>,
    /// The rest.
    #[command(flatten)]
    pub send: SendArgs,
}

const WATCH_EXAMPLES: &str = "\
Examples:
  punctual watch --kind email
  punctual watch --from-beginning --count 100 --output json
  punctual watch --bootstrap-servers kafka:9092 --topic timers.fired.email
  punctual watch --for 1m --output json | jq .lateness_ms";

/// Flags of `watch`.
#[derive(Clone, Debug, Args)]
pub struct WatchArgs {
    /// Kind to show, by number or by name; may be repeated [default: all kinds of the configuration]
    #[arg(long = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,
    /// Topic to show, for those without the configuration; may be repeated
    #[arg(long = "topic", value_name = "TOPIC")]
    pub topics: Vec<String>,
    /// Start with the first event that is still there
    #[arg(long)]
    pub from_beginning: bool,
    /// End after so many events
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// End after this time
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Kafka.
    #[command(flatten)]
    pub kafka: KafkaArgs,
    /// Form of the output: columns for people, or one JSON value a line
    #[arg(short, long, value_name = "table|json", default_value = "table", hide_possible_values = true)]
    pub output: Format,
}

/// What to do about the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigVerb {
    /// Print every key with its value and where that comes from; secrets are hidden
    #[command(after_help = CONFIG_PRINT_EXAMPLES)]
    Print(ConfigArgs),
    /// Check the configuration, without Kafka
    #[command(after_help = CONFIG_VALIDATE_EXAMPLES)]
    Validate(SettingsArgs),
}

const CONFIG_PRINT_EXAMPLES: &str = "\
Examples:
  punctual config print
  punctual config print --config punctual.yaml --set log.level=debug";

const CONFIG_VALIDATE_EXAMPLES: &str = "\
Examples:
  punctual config validate --config punctual.yaml

Exit codes: 0 valid, 2 not";

/// Flags of `config print`.
#[derive(Clone, Debug, Args)]
pub struct ConfigArgs {
    /// Settings.
    #[command(flatten)]
    pub settings: SettingsArgs,
}

const INSPECT_EXAMPLES: &str = "\
Examples:
  punctual inspect /var/lib/punctual
  punctual inspect /var/lib/punctual/partition-3 --output json";

/// Flags of `inspect`.
#[derive(Clone, Debug, Args)]
pub struct InspectArgs {
    /// State directory of a process, or of one partition
    pub directory: PathBuf,
    /// Rows looked at per kind, for those that are overdue or cannot be decoded
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub rows: usize,
    /// Form of the output: columns for people, or one JSON value a line
    #[arg(short, long, value_name = "table|json", default_value = "table", hide_possible_values = true)]
    pub output: Format,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  punctual completions bash > /etc/bash_completion.d/punctual
  punctual completions zsh > \"${fpath[1]}/_punctual\"
  punctual completions fish > ~/.config/fish/completions/punctual.fish";

/// Reads a bound of the tool itself, such as a time-out: `10s`, `1m 30s`.
fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(duration) if duration.is_zero() => Err("it must be longer than nothing; write 10s or 1m".to_owned()),
        Ok(duration) => Ok(duration),
        Err(_) => Err("write a number with a unit, such as 10s or 1m".to_owned()),
    }
}
