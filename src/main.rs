//! The `punctual` binary.
//!
//! Owns the allocator and the exit code. Never does anything else: the command line is in `punctual::cli`.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    punctual::cli::run(std::env::args_os())
}
