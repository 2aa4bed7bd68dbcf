#!/usr/bin/env bash
# Runs the tests of the kernels as 64-bit ARM has them, by an emulator. Where it, a linker or the
# target of Rust is missing that is said, and counted as skipped, not passed over in silence.
set -euo pipefail

target=aarch64-unknown-linux-gnu
if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
  echo "arm is SKIPPED: rustup target add $target adds it"
  exit 0
fi
for tool in qemu-aarch64 aarch64-linux-gnu-gcc; do
  if ! command -v "$tool" >/dev/null; then
    echo "arm is SKIPPED: there is no $tool; the Debian packages qemu-user, gcc-aarch64-linux-gnu" \
      "and libc6-dev-arm64-cross have what it needs"
    exit 0
  fi
done
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
PROPTEST_CASES=16 cargo test --locked --target "$target" --package duramen-kernel --lib
