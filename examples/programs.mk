# Builds the C programs of one example: programs/NAME.c becomes build/NAME.
# An example's Makefile is: include ../programs.mk
root := $(abspath $(dir $(lastword $(MAKEFILE_LIST)))..)
library := $(root)/target/release/libonbeat.a
headers := $(root)/crates/capi/include
CFLAGS ?= -O2 -g
programs := $(patsubst programs/%.c,build/%,$(wildcard programs/*.c))

all: $(programs)

build/%: programs/%.c $(library) $(headers)/onbeat.h
	@mkdir -p build
	$(CC) -std=c11 -Wall -Wextra -Wpedantic -Werror $(CFLAGS) -I$(headers) $< $(library) \
		-lpthread -ldl -lm -o $@

$(library):
	@echo "onbeat's library is missing: run 'make' in $(root) first" >&2; exit 1

clean:
	rm -rf build out out-build out-simulation

.PHONY: all clean
