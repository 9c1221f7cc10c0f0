# make install, make uninstall: what programs need to be built with Onbeat, and to be run by it;
# examples to copy, and the pages about all of it.
# PREFIX, LIBDIR, INCLUDEDIR, MANDIR and DOCDIR say where to; DESTDIR goes before all of them.
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/onbeat
# Where shells look for completions.
BASHCOMPDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHCOMPDIR ?= $(PREFIX)/share/zsh/site-functions
FISHCOMPDIR ?= $(PREFIX)/share/fish/vendor_completions.d
INSTALL ?= install

package := crates/capi/package
version := $(shell sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
major := $(firstword $(subst ., ,$(version)))
# Headers in crates/capi/include.
installed_headers := onbeat.h onbeat.hpp
pages := $(wildcard crates/capi/man/*.3)
# What a page says of several functions is found by the name of each.
page_names_in = sed -n '/^\.SH NAME/{n;s/ \\-.*//;s/,//g;p;}'
page_names := $(shell $(page_names_in) $(pages))
# Generated from templates in this directory, each with the directory in LIBDIR that it goes to.
installed_templates := pkgconfig/onbeat.pc cmake/onbeat/onbeat-config.cmake \
	cmake/onbeat/onbeat-config-version.cmake

# What the command, editors, Wireshark and the examples' Makefiles read.
data := $(PREFIX)/share/onbeat
data_files := $(wildcard schema/*.json) wireshark/onbeat.lua examples/programs.mk
installed_data := $(patsubst %,$(data)/%,$(patsubst examples/%,%,$(data_files)))
# What to read and to copy: no example's programs.mk, so that each finds the one above.
doc_files := $(wildcard docs/*.md docs/*.svg) examples/README.md $(sort $(shell find \
	$(wildcard examples/[0-9]*) -type f ! -path '*/build/*' ! -path '*/out/*' ! -path '*/out[-.]*' ! -name '*.csv*'))
completions := $(BASHCOMPDIR)/onbeat $(ZSHCOMPDIR)/_onbeat $(FISHCOMPDIR)/onbeat.fish

# What is below PREFIX is found from where the templates are, so that all of it may be moved; $(2) is
# how the template calls the prefix. What is elsewhere stays where it is.
place = $(patsubst $(PREFIX)/%,$(2)/%,$(1))
empty :=
below := $(filter-out $(LIBDIR),$(patsubst $(PREFIX)/%,%,$(LIBDIR)))
up := $(subst $(empty) $(empty),/,$(patsubst %,..,$(subst /, ,$(below))))
prefix_from = $(if $(below),$(1)/$(up),$(PREFIX))

installed := $(BINDIR)/onbeat $(LIBDIR)/libonbeat.a $(LIBDIR)/libonbeat.so \
	$(LIBDIR)/libonbeat.so.$(major) $(LIBDIR)/libonbeat.so.$(version) \
	$(installed_headers:%=$(INCLUDEDIR)/%) $(installed_templates:%=$(LIBDIR)/%) \
	$(page_names:%=$(MANDIR)/man3/%.3) $(MANDIR)/man1/onbeat.1 \
	$(installed_data) $(doc_files:%=$(DOCDIR)/%) $(completions)

# Installs the compatibility library, Timed C and what Lingua Franca uses to the same place, or takes
# them away.
others = for part in compat timedc lf; do $(MAKE) --no-print-directory -C $$part PREFIX=$(PREFIX) LIBDIR=$(LIBDIR) \
	INCLUDEDIR=$(INCLUDEDIR) MANDIR=$(MANDIR) DESTDIR=$(DESTDIR) INSTALL="$(INSTALL)" $(1) || exit 1; done

# Does not build: what root installs need not be built by root.
install:
	@for file in onbeat libonbeat.a libonbeat.so; do test -f target/$(PROFILE)/$$file || \
		{ echo "onbeat: target/$(PROFILE)/$$file is missing: run 'make' first" >&2; exit 1; }; done
	$(INSTALL) -d $(sort $(patsubst %/,$(DESTDIR)%,$(dir $(installed))))
	$(INSTALL) -m 755 target/$(PROFILE)/onbeat $(DESTDIR)$(BINDIR)/onbeat
	$(INSTALL) -m 644 target/$(PROFILE)/libonbeat.a $(DESTDIR)$(LIBDIR)/libonbeat.a
	$(INSTALL) -m 755 target/$(PROFILE)/libonbeat.so $(DESTDIR)$(LIBDIR)/libonbeat.so.$(version)
	ln -sf libonbeat.so.$(version) $(DESTDIR)$(LIBDIR)/libonbeat.so.$(major)
	ln -sf libonbeat.so.$(major) $(DESTDIR)$(LIBDIR)/libonbeat.so
	$(INSTALL) -m 644 $(installed_headers:%=crates/capi/include/%) $(DESTDIR)$(INCLUDEDIR)
	$(INSTALL) -m 644 $(pages) $(DESTDIR)$(MANDIR)/man3
	@for page in $(pages); do \
		for name in $$($(page_names_in) $$page); do \
			test $$name.3 = $${page##*/} || \
				ln -sf $${page##*/} $(DESTDIR)$(MANDIR)/man3/$$name.3 || exit 1; \
		done; \
	done
	$(INSTALL) -m 644 crates/cli/man/onbeat.1 $(DESTDIR)$(MANDIR)/man1
	@for file in $(data_files); do \
		$(INSTALL) -m 644 $$file $(DESTDIR)$(data)/$${file#examples/} || exit 1; \
	done
	@for file in $(doc_files); do \
		$(INSTALL) -m 644 $$file $(DESTDIR)$(DOCDIR)/$$file || exit 1; \
	done
	@# A copy of an example still names the schema.
	@sed -i 's|^#:schema .*/|#:schema $(data)/schema/|' \
		$(addprefix $(DESTDIR)$(DOCDIR)/,$(filter %.toml,$(doc_files)))
	target/$(PROFILE)/onbeat completions bash >$(DESTDIR)$(BASHCOMPDIR)/onbeat
	target/$(PROFILE)/onbeat completions zsh >$(DESTDIR)$(ZSHCOMPDIR)/_onbeat
	target/$(PROFILE)/onbeat completions fish >$(DESTDIR)$(FISHCOMPDIR)/onbeat.fish
	chmod 644 $(completions:%=$(DESTDIR)%)
	@for file in $(installed_templates); do \
		sed -e 's|@PC_PREFIX@|$(call prefix_from,$${pcfiledir}/..)|' \
			-e 's|@PC_LIBDIR@|$(call place,$(LIBDIR),$${prefix})|' \
			-e 's|@PC_DATADIR@|$(call place,$(data),$${prefix})|' \
			-e 's|@PC_INCLUDEDIR@|$(call place,$(INCLUDEDIR),$${prefix})|' \
			-e 's|@PREFIX@|$(call prefix_from,$${onbeat_prefix}/../..)|' \
			-e 's|@LIBDIR@|$(call place,$(LIBDIR),$${onbeat_prefix})|' \
			-e 's|@INCLUDEDIR@|$(call place,$(INCLUDEDIR),$${onbeat_prefix})|' \
			-e 's|@DATADIR@|$(call place,$(data),$${onbeat_prefix})|' \
			-e 's|@VERSION@|$(version)|; s|@MAJOR@|$(major)|' \
			$(package)/$${file##*/}.in >$(DESTDIR)$(LIBDIR)/$$file || exit 1; \
		chmod 644 $(DESTDIR)$(LIBDIR)/$$file; \
	done
	@$(call others,install)
	@echo "onbeat $(version) is in $(DESTDIR)$(PREFIX)"

uninstall:
	@$(call others,uninstall)
	rm -f $(installed:%=$(DESTDIR)%)
	rmdir $(DESTDIR)$(LIBDIR)/cmake/onbeat 2>/dev/null || true
	find $(DESTDIR)$(DOCDIR) $(DESTDIR)$(data) -depth -type d -empty -delete 2>/dev/null || true

.PHONY: install uninstall
