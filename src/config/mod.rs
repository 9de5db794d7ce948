//! Settings as data.
//!
//! Owns the way from texts to a [`settings::Config`]: `config/punctual.yaml`, then the user's file, then the environment, then
//! flags. Never starts anything and never has a default of its own. Keeps: a value from the environment or a flag is taken to
//! the byte; whatever is wrong is refused with the key, the value, its origin and the remedy.
//!
//! ```text
//!   sources ──▶ layers (one text per key, with its origin) ──▶ settings (typed) ──▶ validate ──▶ what each layer is told
//!                  │
//!                  └──▶ print
//! ```

pub mod convert;
pub mod error;
pub mod sources;

mod calendars;
mod kinds;
mod layers;
mod memory;
mod print;
mod read;
pub mod settings;
mod validate;
mod yaml;
