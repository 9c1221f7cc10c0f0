# make          builds Onbeat, the libraries that programs are linked with, the examples' programs
# make demo     runs the two-hosts experiment: table, HTML report
# make test     passes everything; sets up what it needs, builds what it tests for itself
# REQUIRE=... what no test may lack (tools superuser namespaces); at its end `make test` lists those
#               that did not run
# make bench    the engine's throughput, also beside ns-3; latency beside other ways to send, and
#               wake-up errors, over veth; Timed C beside cyclictest (as root, some minutes; `make
#               bench BENCH=` for the long runs)
# PROFILE=dist  as what is given to others: twice as long to build, optimised as a whole; with `make`
#               and `make install`
# make install  puts what make built below PREFIX=/usr/local; make uninstall removes it
CARGO ?= cargo
BENCH ?= --quick
REQUIRE ?= tools
PROFILE ?= release
onbeat := target/$(PROFILE)/onbeat
examples := $(wildcard examples/[0-9]*)

build:
	@scripts/needs rust cc
	$(CARGO) build --profile $(PROFILE) --locked -p onbeat-cli -p onbeat-capi
	@$(MAKE) --no-print-directory -C compat
	@$(MAKE) --no-print-directory -C timedc
	@for example in $(examples); do $(MAKE) --no-print-directory -C $$example || exit 1; done

demo: build
	$(onbeat) run examples/01-two-hosts --all-scenarios

test:
	@scripts/needs rust lint cc c++ browser ptp packaging netns capture gdb python cyclictest stress-ng
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) check --manifest-path fuzz/Cargo.toml --target-dir target --locked
	@rm -f target/not-run
	@# Twice as many threads as processors: many tests wait for a clock.
	@RUST_TEST_THREADS=$$((2 * $$(nproc))) ONBEAT_REQUIRE="$(REQUIRE)" ONBEAT_REQUIRE_BROWSER=1 \
		ONBEAT_NOT_RUN=$(CURDIR)/target/not-run \
		$(CARGO) test --workspace --locked --no-fail-fast; status=$$?; \
		scripts/not-run target/not-run; exit $$status
	@$(MAKE) --no-print-directory -C examples/01-two-hosts \
		library=$(CURDIR)/target/debug/deps/libonbeat.a
	@ONBEAT=$(CURDIR)/target/debug/onbeat ONBEAT_HOME=$(CURDIR)/target/debug/home scripts/python-tests

bench:
	@scripts/needs rust cc python cyclictest
	$(CARGO) build --profile dist --locked -p onbeat-cli
	$(CARGO) bench --locked -p onbeat-net
	python3 benches/simulation/run.py $(BENCH)
	python3 benches/latency/run.py $(BENCH)
	python3 benches/rendezvous/run.py $(BENCH)
	python3 benches/timedc/run.py $(BENCH)
	python3 benches/translate/run.py $(BENCH)
	python3 benches/plan/run.py $(BENCH)
	python3 benches/noise/run.py $(BENCH)
	python3 benches/clock/run.py $(BENCH)

clean:
	$(CARGO) clean
	@$(MAKE) --no-print-directory -C compat clean
	@$(MAKE) --no-print-directory -C timedc clean
	@for example in $(examples); do $(MAKE) --no-print-directory -C $$example clean; done

include crates/capi/package/install.mk

.PHONY: build demo test bench clean
