//! The `punctual` binary.
//!
//! Owns the allocator. Never does anything else: the command line is in `punctual::cli`.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() {
    punctual::cli::run(std::env::args_os())
}
