/*
 * symbol.c: what the program's own symbol table calls an address, for messages.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "internal.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

extern const char __ehdr_start[] __attribute__((weak, visibility("hidden")));

/* The program's file; NULL if it cannot be read. */
static const char *map(size_t *size)
{
	struct stat state;
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return NULL;
	void *at = MAP_FAILED;
	if (fstat(file, &state) == 0 && (size_t)state.st_size >= sizeof(ElfW(Ehdr)))
		at = mmap(NULL, (size_t)state.st_size, PROT_READ, MAP_PRIVATE, file, 0);
	close(file);
	*size = (size_t)state.st_size;
	return at == MAP_FAILED ? NULL : at;
}

static bool is_within(size_t size, size_t from, size_t length)
{
	return from <= size && length <= size - from;
}

/* Looks into one table of symbols. */
static const ElfW(Sym) *find(const char *file, size_t size, const ElfW(Shdr) *table, uintptr_t at)
{
	if (!is_within(size, table->sh_offset, table->sh_size))
		return NULL;
	const ElfW(Sym) *symbols = (const void *)(file + table->sh_offset);
	for (size_t i = 0; i < table->sh_size / sizeof(*symbols); i++) {
		unsigned type = symbols[i].st_info & 0xf;
		bool is_named = type == STT_OBJECT || type == STT_FUNC;
		if (is_named && at >= symbols[i].st_value &&
		    at - symbols[i].st_value < symbols[i].st_size)
			return &symbols[i];
	}
	return NULL;
}

static bool look_up(const char *file, size_t size, uintptr_t at, char *name, size_t length)
{
	const ElfW(Ehdr) *head = (const void *)file;
	if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
	    !is_within(size, head->e_shoff, head->e_shnum * sizeof(ElfW(Shdr))))
		return false;
	const ElfW(Shdr) *sections = (const void *)(file + head->e_shoff);
	if (head->e_type == ET_DYN)
		at -= (uintptr_t)__ehdr_start;
	for (size_t i = 0; i < head->e_shnum; i++) {
		if (sections[i].sh_type != SHT_SYMTAB || sections[i].sh_link >= head->e_shnum)
			continue;
		const ElfW(Shdr) *strings = &sections[sections[i].sh_link];
		const ElfW(Sym) *found = find(file, size, &sections[i], at);
		if (!found || !is_within(size, strings->sh_offset, strings->sh_size) ||
		    found->st_name >= strings->sh_size)
			continue;
		unsigned long rest = at - found->st_value;
		const char *text = file + strings->sh_offset + found->st_name;
		bool is_part = rest > 0 && (found->st_info & 0xf) == STT_OBJECT;
		snprintf(name, length, is_part ? "%s+%lu" : "%s", text, rest);
		return true;
	}
	return false;
}

void timedc_symbol(const void *address, char *name, size_t length)
{
	size_t size;
	const char *file = map(&size);
	if (!file || !look_up(file, size, (uintptr_t)address, name, length))
		snprintf(name, length, "%p", address);
	if (file)
		munmap((void *)(uintptr_t)file, size);
}
