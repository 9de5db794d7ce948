//! The flags of `arm` that say when.
//!
//! Owns their names and help. Never reads them: `when` does.

use clap::Args;

/// When a timer is to fire.
#[derive(Clone, Debug, Default, Args)]
#[group(required = true, multiple = false)]
pub struct WhenArgs {
    /// Instant, RFC 3339 with an offset: 2026-12-01T09:00:00.250Z
    #[arg(long, value_name = "INSTANT", help_heading = "When, one of")]
    pub at: Option<String>,
    /// Time from now, ISO 8601: PT30M, P7D
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, help_heading = "When, one of")]
    pub after: Option<String>,
    /// Again and again, by a cron expression: '0 9 * * MON-FRI'
    #[arg(long, value_name = "EXPRESSION", help_heading = "When, one of")]
    pub cron: Option<String>,
    /// Again and again, by an ISO 8601 interval: PT15M, P1D, P1M
    #[arg(long, value_name = "INTERVAL", allow_hyphen_values = true, help_heading = "When, one of")]
    pub every: Option<String>,
    /// Civil time in the zone of --zone: 2027-03-28T02:30
    #[arg(long, value_name = "TIME", help_heading = "When, one of")]
    pub local: Option<String>,
    /// By a rule, with --param: minutes, hours, days, business
    #[arg(long, value_name = "RULE", help_heading = "When, one of")]
    pub calendar: Option<String>,
}

/// What goes with some of the forms.
#[derive(Clone, Debug, Default, Args)]
pub struct ScheduleArgs {
    /// IANA time zone of --cron, --every and --local: Europe/Berlin [default: UTC, none for --local]
    #[arg(long, value_name = "ZONE", help_heading = "Schedule")]
    pub zone: Option<String>,
    /// Most fires of --cron and --every [default: without end]
    #[arg(long, value_name = "N", help_heading = "Schedule")]
    pub count: Option<std::num::NonZeroU64>,
    /// Last instant at which --cron and --every fire [default: without end]
    #[arg(long, value_name = "INSTANT", help_heading = "Schedule")]
    pub until: Option<String>,
    /// Occurrence 0 of --every [default: now]
    #[arg(long, value_name = "INSTANT", help_heading = "Schedule")]
    pub anchor: Option<String>,
    /// What --local means where the clock changes: compatible, earlier, later, reject [default: compatible]
    #[arg(long, value_name = "POLICY", help_heading = "Schedule")]
    pub disambiguation: Option<String>,
    /// Parameter of --calendar; a whole number is one; may be repeated
    #[arg(long = "param", value_name = "NAME=VALUE", help_heading = "Schedule")]
    pub parameters: Vec<String>,
    /// Show when it would fire, and send nothing
    #[arg(long, help_heading = "Schedule")]
    pub dry_run: bool,
}
