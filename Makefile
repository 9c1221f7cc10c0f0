# make          builds Onbeat, the libraries that programs are linked with, the examples' programs
# make demo     runs the two-hosts experiment: table, HTML report; builds what that needs as for tests
# make test     passes everything; sets up what it needs, builds what it tests for itself
# make lint     what Clippy says of the code, without tests; `make test` builds with it
# REQUIRE=... what no test may lack (tools superuser namespaces); at its end `make test` lists those
#               that did not run
# make hardware everything about the hardware in rtl/: all tests, planted faults, 100,000 programs in
#               lock-step, synthesis, place and route, the experiments (hours)
# make bench    the engine's throughput, also beside ns-3; latency beside other ways to send, and
#               wake-up errors, over veth; Timed C beside cyclictest (as root, some minutes; `make
#               bench BENCH=` for the long runs)
# make wheel    the Python package with the library inside, for this platform: target/wheels
# PROFILE=dist  as what is given to others: twice as long to build, optimised as a whole; with `make`,
#               `make wheel` and `make install`
# make install  puts what make built below PREFIX=/usr/local; make uninstall removes it
CARGO ?= cargo
BENCH ?= --quick
REQUIRE ?= tools
PROFILE ?= release
built = target/$(patsubst dev,debug,$(PROFILE))
examples := $(wildcard examples/[0-9]*)

build: command
	@$(MAKE) --no-print-directory -C compat
	@$(MAKE) --no-print-directory -C timedc
	@for example in $(examples); do $(MAKE) --no-print-directory -C $$example || exit 1; done

command:
	@scripts/needs rust cc
	$(CARGO) build --profile $(PROFILE) --locked -p onbeat-cli -p onbeat-capi

# It is there sooner than optimised, and sooner without what would speed up building it again. The
# libraries are those of `make test`.
demo: PROFILE = dev
demo: export CARGO_INCREMENTAL = 0
demo: command
	@$(MAKE) --no-print-directory -C examples/01-two-hosts library=$(CURDIR)/$(built)/libonbeat.a
	$(built)/onbeat run examples/01-two-hosts --all-scenarios

test:
	@scripts/needs rust lint cc c++ python
	$(CARGO) fmt --all --check
	@mkdir -p target && rm -f target/not-run
	@# Many tests wait for a clock: twice as many threads as processors.
	@RUST_TEST_THREADS=$$((2 * $$(nproc))) ONBEAT_REQUIRE="$(REQUIRE)" ONBEAT_REQUIRE_BROWSER=1 \
		ONBEAT_NOT_RUN=$(CURDIR)/target/not-run CARGO="$(CARGO)" scripts/run-tests browser ptp packaging \
		netns capture yang gdb cyclictest stress-ng cp-sat netconf mqtt hardware; \
		status=$$?; scripts/not-run target/not-run; exit $$status

# With what the tests build: `make test` runs it beside them.
python-tests:
	@$(MAKE) --no-print-directory -C examples/01-two-hosts \
		library=$(CURDIR)/target/debug/deps/libonbeat.a
	@ONBEAT=$(CURDIR)/target/debug/onbeat ONBEAT_HOME=$(CURDIR)/target/debug/home scripts/python-tests

wheel: command
	@scripts/needs python
	@rm -f target/wheels/onbeat-*.whl
	ONBEAT_WHEEL_LIBRARY=$(CURDIR)/$(built)/libonbeat.so python3 -m pip wheel --quiet --no-deps \
		--wheel-dir target/wheels ./python
	@ls target/wheels/onbeat-*.whl

lint:
	@# Tests compile its targets.
	$(CARGO) metadata --manifest-path fuzz/Cargo.toml --locked --format-version 1 >target/fuzz.json
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

hardware:
	@scripts/needs rust cc c++ python hardware hardware-long
	@$(MAKE) --no-print-directory -C rtl lint formal tests-long mutants synth route
	ONBEAT_REQUIRE=tools ONBEAT_HARDWARE_PROGRAMS=100000 \
		ONBEAT_HARDWARE_RESULT=$(CURDIR)/benches/atacama/lockstep.json \
		$(CARGO) test --locked -p onbeat-network-code --test network_code hardware
	@$(MAKE) --no-print-directory -C rtl bench
	@$(MAKE) --no-print-directory -C rtl/bench late
	ONBEAT_HARDWARE_NETWORKS=2000 ONBEAT_HARDWARE_RESULT=$(CURDIR)/benches/atacama/networks.json \
		$(CARGO) test --locked -p onbeat-net --test engine hardware
	python3 benches/atacama/run.py

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
	python3 benches/virtual_time/run.py $(BENCH)

clean:
	$(CARGO) clean
	@$(MAKE) --no-print-directory -C compat clean
	@$(MAKE) --no-print-directory -C timedc clean
	@for example in $(examples); do $(MAKE) --no-print-directory -C $$example clean; done

include crates/capi/package/install.mk

.PHONY: build command demo test python-tests wheel lint hardware bench clean
