# `make test` and `make demo` do all their own set-up. `make help` lists the rest.

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/duramen
ifeq ($(origin CARGO_TARGET_DIR),undefined)
CARGO_TARGET_DIR := $(if $(CI),$(CACHE),$(CURDIR))/target
endif
export CARGO_TARGET_DIR
ifdef CI
export CARGO_INCREMENTAL := 0
endif
export RUSTDOCFLAGS := -D warnings

# A pinned tool is built once into a folder named after its version, outside the clone.
NEXTEST_VERSION := 0.9.151
DENY_VERSION := 0.20.2
NEXTEST := $(CACHE)/cargo-nextest-$(NEXTEST_VERSION)/bin/cargo-nextest
DENY := $(CACHE)/cargo-deny-$(DENY_VERSION)/bin/cargo-deny

# Every stage names the same packages and features, so that nothing is built twice.
WORKSPACE := --workspace --locked
SIMULATOR := package(duramen-sim)
# Half of the suites' seeds follow from it, so that each commit is tried with others.
COMMIT := $(shell git rev-parse HEAD 2>/dev/null)

.PHONY: help test demo bench lint fmt clippy doc tidy deny unit miri arm doctest suites teeth schedules examples setup clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: ## every check and every test, as CI runs them
	@scripts/stages.sh setup fmt clippy unit suites teeth schedules miri arm doctest examples doc deny

demo: setup ## a tour of the command line on 63 versions of a real document
	@cargo run --release --locked --package duramen-cli -- demo

bench: ## the published figures, with rivals; some: make bench ARGS="V1 V2 --quick"
	@scripts/setup.sh --bench
	@cargo build --release --locked --package duramen-cli
	@cargo run --release --locked --package duramen-bench -- $(or $(ARGS),all)

lint: ## formatting, clippy, documentation, house rules and dependencies
	@scripts/stages.sh fmt clippy doc tidy deny

fmt:
	cargo fmt --all --check

clippy:
	cargo clippy $(WORKSPACE) --all-targets -- -D warnings

doc:
	cargo doc $(WORKSPACE) --no-deps

tidy: ## the house rules that a machine can check
	cargo test --locked --package duramen-sim --test it tidy

deny: $(DENY)
	$(DENY) check bans licenses sources

unit: $(NEXTEST) ## the tests of every crate but the simulator
	$(NEXTEST) nextest run $(WORKSPACE) -E 'not $(SIMULATOR)'

suites: $(NEXTEST) ## power losses, failing devices, killed processes, and the house rules
	$(NEXTEST) nextest run $(WORKSPACE) -E '$(SIMULATOR)'
	cargo run --release --locked --package duramen-sim -- suites --tier a --fresh "$(COMMIT)"

teeth: ## defects planted into the engine, each of which the suites must find
	CARGO_TARGET_DIR="$(CARGO_TARGET_DIR)/teeth" RUSTFLAGS="$(RUSTFLAGS) --cfg duramen_teeth" \
	  cargo run --profile teeth --locked --package duramen-sim -- teeth

schedules: ## the orders in which threads of the engine may run
	cargo run --locked --package duramen-schedules -- all "$(COMMIT)"

# The engine itself has no unsafe code; this looks into what its codecs are built on.
MIRI_TESTS := journal::group journal::identity manifest::tests segment::block segment::filter wire::
miri: ## the codecs under Miri; needs a nightly toolchain with the component miri
	@scripts/miri.sh $(MIRI_TESTS)

arm: ## the kernels on 64-bit ARM, emulated; needs the target of Rust, a linker and QEMU
	@scripts/arm.sh

# The examples in the second build of the engine name the first one.
doctest:
	cargo test $(WORKSPACE) --doc -- --skip crates/duramen-schedules

examples: ## run the examples of the embedded interface
	cargo build $(WORKSPACE) --examples
	@for example in $(notdir $(basename $(wildcard crates/duramen/examples/*.rs))); do \
	  echo "== $$example" && "$(CARGO_TARGET_DIR)/debug/examples/$$example" || exit 1; \
	done

setup: ## what a fresh machine lacks; nothing when there is nothing to do
	@scripts/setup.sh

clean: ## remove what was built, but not the pinned tools
	cargo clean

# Unoptimized: the tools wait for the compiler and the tests, and build in a third of the time so.
# Without CARGO_TARGET_DIR their intermediate files go where cargo removes them.
INSTALL = env -u CARGO_TARGET_DIR CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off \
  cargo install --quiet --locked --root $(patsubst %/bin/,%,$(dir $@))

$(NEXTEST):
	@echo "building cargo-nextest $(NEXTEST_VERSION), once for this machine"
	@$(INSTALL) cargo-nextest@$(NEXTEST_VERSION)

$(DENY):
	@echo "building cargo-deny $(DENY_VERSION), once for this machine"
	@$(INSTALL) cargo-deny@$(DENY_VERSION)
