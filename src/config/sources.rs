//! Where settings come from.
//!
//! Owns [`Sources`], the texts of all sources as they were found. Never interprets them. Keeps: only [`Sources::gather`] looks
//! at the host; everything behind it is a function of its result.

use std::path::{Path, PathBuf};

use super::error::ConfigError;

/// Environment variables with this prefix are settings.
pub(super) const ENVIRONMENT_PREFIX: &str = "PUNCTUAL__";

/// The texts that settings are read from, in rising priority, on top of `config/punctual.yaml`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Path and content of the file given with `--config`.
    pub file: Option<(PathBuf, String)>,
    /// Environment variables, name and value; those without the prefix `PUNCTUAL__` are ignored.
    pub environment: Vec<(String, String)>,
    /// The arguments of `--set`: `section.key=value`.
    pub set: Vec<String>,
    /// The host name, which stands in for an empty `instance`.
    pub host_name: String,
}

impl Sources {
    /// Reads the file, the environment and the host name.
    ///
    /// # Errors
    /// When the file cannot be read, or one of our variables is not UTF-8.
    pub fn gather(file: Option<&Path>, set: &[String]) -> Result<Self, ConfigError> {
        let file = file.map(read_file).transpose()?;
        let environment = read_environment()?;
        let host_name = gethostname::gethostname().to_string_lossy().into_owned();
        Ok(Self { file, environment, set: set.to_vec(), host_name })
    }
}

fn read_file(path: &Path) -> Result<(PathBuf, String), ConfigError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok((path.to_owned(), text)),
        Err(error) => Err(ConfigError::of_key(
            "--config",
            None,
            format!("cannot read `{}`: {error}; name a readable YAML file in UTF-8", path.display()),
        )),
    }
}

fn read_environment() -> Result<Vec<(String, String)>, ConfigError> {
    let mut variables = Vec::new();
    for (name, value) in std::env::vars_os() {
        let Some(name) = name.to_str().filter(|name| name.starts_with(ENVIRONMENT_PREFIX)) else {
            continue;
        };
        let Ok(value) = value.into_string() else {
            return Err(ConfigError::of_key(name, None, "the value of this environment variable is not UTF-8"));
        };
        variables.push((name.to_owned(), value));
    }
    // The environment has no order of its own; errors are to be the same at each start.
    variables.sort();
    Ok(variables)
}
