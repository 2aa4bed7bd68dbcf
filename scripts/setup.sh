#!/usr/bin/env bash
# Installs what the project needs and this machine lacks; says nothing when there is nothing to do.
# `setup.sh --bench` adds the rivals of the benchmarks: PostgreSQL, the engines of A1 to A9 and T2
# to T5 in a virtual environment of Python of their own, and a program with the storage of
# Prometheus, which takes Go.
set -euo pipefail

# Installs Debian packages where that is possible, else tells what to install.
debian() {
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    echo "installing $*"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null
  else
    return 1
  fi
}

component() {
  cargo "$1" --version >/dev/null 2>&1 && return
  echo "installing $2"
  rustup component add "$2" || { echo "install $2 for your Rust toolchain" >&2; exit 1; }
}

postgresql() {
  local found
  found=$(find /usr/lib/postgresql /opt/homebrew/opt /usr/local -name initdb 2>/dev/null || true)
  [ -n "$found" ] || command -v initdb >/dev/null && return
  debian postgresql || echo "PostgreSQL is not installed: the benchmarks leave that rival out" >&2
}

analytics() {
  local folder="${XDG_CACHE_HOME:-$HOME/.cache}/duramen/analytics"
  local wanted="duckdb==2.0.0 polars==2.1.0 chdb==4.4.0 datafusion==55.0.0"
  wanted="$wanted pyarrow==26.0.1 numpy==2.4.6"
  [ "$(cat "$folder/installed" 2>/dev/null)" = "$wanted" ] && return
  echo "installing $wanted"
  # shellcheck disable=SC2086 # the words are packages
  if python3 -m venv "$folder" && "$folder/bin/pip" install -q $wanted; then
    echo "$wanted" > "$folder/installed"
  else
    rm -rf "$folder"
    echo "the engines of A and T are not installed: the benchmarks leave them out" >&2
  fi
}

prometheus() {
  local source folder="${XDG_CACHE_HOME:-$HOME/.cache}/duramen/prometheus"
  source=$(cd "$(dirname "$0")/series-rival" && pwd)
  local wanted
  wanted=$(cat "$source/go.sum" "$source/main.go" | sha256sum)
  [ "$(cat "$folder/installed" 2>/dev/null)" = "$wanted" ] && return
  echo "installing the storage of Prometheus"
  mkdir -p "$folder"
  if command -v go >/dev/null && go build -C "$source" -o "$folder/series-rival" .; then
    echo "$wanted" > "$folder/installed"
  else
    rm -rf "$folder"
    echo "Prometheus is not installed (install Go): the benchmarks leave it out" >&2
  fi
}

command -v cargo >/dev/null || { echo "install Rust first: https://rustup.rs" >&2; exit 1; }
command -v cc >/dev/null || debian build-essential ||
  { echo "install a C compiler (Debian: build-essential; macOS: xcode-select --install)" >&2; exit 1; }
component fmt rustfmt
component clippy clippy
if [ "${1:-}" = --bench ]; then postgresql; analytics; prometheus; fi
