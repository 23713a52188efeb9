# `just` lists the recipes; `just verify` is what a change must pass.

_default:
    @just --list

# Everything that must hold before a change is merged
verify:
    .ci/run

# All tests, or those whose name contains FILTER
test filter="":
    cargo test --workspace --locked {{ filter }}

# The client libraries, and workers in Python and Node whose programs and hosts are killed again and again
clients:
    clients/run
    BATON_KILLS=20 clients/workers/run

# Formatting and lints, warnings as errors
lint:
    cargo fmt --all -- --check
    cargo clippy --workspace --all-targets --locked -- -D warnings

# Measure a release build beside this machine's limits (`just bench --quick`, `just bench --only w1,w4`)
bench *args:
    cargo build --release --locked -p baton -p baton-bench
    target/release/baton-bench {{ args }}

# A host for development: demo workflows, loopback, data kept in .baton
dev *args:
    cargo run --locked -- dev {{ args }}

# API documentation of our own crates
docs:
    cargo doc --workspace --no-deps --locked

# Licences, advisories and duplicate sources (needs cargo-deny)
deny:
    cargo deny check
