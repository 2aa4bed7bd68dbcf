#!/usr/bin/env bash
# Runs the tests whose names contain one of the arguments under Miri. Where there is no nightly
# toolchain with Miri that is said, and counted as skipped, not passed over in silence.
set -euo pipefail

if ! version=$(cargo +nightly miri --version 2>&1); then
  echo "miri is SKIPPED: rustup toolchain install nightly --component miri,rust-src adds it"
  echo "$version"
  exit 0
fi
# Its standard library lies in the user's cache, so that it is built once for a machine.
cargo +nightly miri setup --quiet
MIRIFLAGS=-Zmiri-disable-isolation CARGO_TARGET_DIR="$CARGO_TARGET_DIR/miri" \
  cargo +nightly miri test --locked --package duramen --lib -- "$@"
