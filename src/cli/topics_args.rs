//! The flags of `topics` as they are typed.
//!
//! Owns the names of the flags that say what to do about the topics, and their help. Never does it: that is in `topics`.

use clap::{Args, Subcommand};

use super::args::KafkaArgs;
use super::output::Format;

/// What to do about the topics.
#[derive(Debug, Subcommand)]
pub enum TopicsVerb {
    /// Create the topics that are missing, with the right policies; changes none that exists
    #[command(after_help = TOPICS_CREATE_EXAMPLES)]
    Create(TopicsCreateArgs),
    /// Check the topics and say what is wrong with them
    #[command(after_help = TOPICS_VALIDATE_EXAMPLES)]
    Validate(TopicsArgs),
}

const TOPICS_CREATE_EXAMPLES: &str = "\
Examples:
  punctual topics create --config punctual.yaml
  punctual topics create --config punctual.yaml --partitions 12 --replication 3
  punctual topics create --bootstrap-servers localhost:9092 --replication 1 --output json";

const TOPICS_VALIDATE_EXAMPLES: &str = "\
Examples:
  punctual topics validate --config punctual.yaml
  punctual topics validate --bootstrap-servers localhost:9092 --output json

Exit codes: 0 no errors (there may be warnings), 3 errors: the service would not start";

/// Flags of `topics validate`.
#[derive(Clone, Debug, Args)]
pub struct TopicsArgs {
    /// Kafka.
    #[command(flatten)]
    pub kafka: KafkaArgs,
    /// Form of the output: columns for people, or one JSON value a line
    #[arg(short, long, value_name = "table|json", default_value = "table", hide_possible_values = true)]
    pub output: Format,
}

/// Flags of `topics create`.
#[derive(Clone, Debug, Args)]
pub struct TopicsCreateArgs {
    /// Partitions of new topics, over the configuration
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub partitions: Option<u32>,
    /// Replicas of new topics, over the configuration; -1 leaves them to the broker
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = replication)]
    pub replication: Option<i32>,
    /// The rest.
    #[command(flatten)]
    pub topics: TopicsArgs,
}

/// Reads a number of replicas.
fn replication(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|number| *number == -1 || (1..=100).contains(number));
    number.ok_or_else(|| "write 1 to 100, or -1 for the broker's own default".to_owned())
}
