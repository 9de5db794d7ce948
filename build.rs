//! Generates the protobuf types of `src/wire` from `proto/`, with a compiler in Rust: no `protoc` is needed.

use std::error::Error;

const FILES: [&str; 5] = [
    "punctual/v1/record.proto",
    "punctual/v1/command.proto",
    "punctual/v1/result.proto",
    "punctual/v1/state.proto",
    "punctual/v1/outbox.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"])?;
    // Byte fields share the memory of the record that they were read from.
    prost_build::Config::new().bytes(["."]).btree_map(["."]).compile_fds(descriptors)?;
    Ok(())
}
