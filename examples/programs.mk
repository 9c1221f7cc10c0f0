# Builds the C programs of one example: programs/NAME.c becomes build/NAME. An example's Makefile
# includes this file. Onbeat is the source tree that it is in, or else what pkg-config finds.
root := $(abspath $(dir $(lastword $(MAKEFILE_LIST)))..)
CFLAGS ?= -O2 -g
programs := $(patsubst programs/%.c,build/%,$(wildcard programs/*.c))

ifneq ($(wildcard $(root)/crates/capi/include/onbeat.h),)
library := $(root)/target/$(or $(PROFILE),release)/libonbeat.a
onbeat_cflags := -I$(root)/crates/capi/include
onbeat_libs := $(library) -lpthread -ldl -lm
built_with := $(library) $(root)/crates/capi/include/onbeat.h build/.linked-with
else
onbeat_cflags := $(shell pkg-config --cflags onbeat)
libdir := $(shell pkg-config --variable=libdir onbeat)
onbeat_libs := $(if $(libdir),$(shell pkg-config --libs onbeat) -Xlinker -rpath=$(libdir))
endif

all: $(programs)

build/%: programs/%.c $(wildcard programs/*.h) $(built_with)
	@$(if $(onbeat_libs),,$(error Onbeat is not installed where pkg-config looks: PKG_CONFIG_PATH))
	@mkdir -p build
	$(CC) -std=c11 -Wall -Wextra -Wpedantic -Werror $(CFLAGS) $(onbeat_cflags) $< $(onbeat_libs) -o $@

ifdef library
# Another library than the last time need not be newer than what was linked with that.
build/.linked-with: always
	@mkdir -p build
	@echo '$(library)' | cmp -s - $@ || echo '$(library)' >$@

$(library):
	@echo "onbeat's library is missing: run 'make' in $(root) first" >&2; exit 1
endif

clean:
	rm -rf build out out-build out-simulation

.PHONY: all always clean
