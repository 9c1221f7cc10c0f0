/*
 * deferred.c: calls of functions that no wrapper was written for: those of libraries that programs
 * are linked with, and those that only pointers lead to. calls.S makes the calls.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "wrap.h"

#include <dlfcn.h>
#include <link.h>

#define POINTERS_MAX 1024
#define ENTRY_OCTETS 16

/* Of calls.S: entry i calls pointer i. On some processors there are none. */
extern const unsigned char timedc_pointer_entries[];
extern const uint32_t timedc_pointer_max;
void *timedc_pointers[POINTERS_MAX];
static unsigned pointer_count;
static pthread_mutex_t pointers_lock = PTHREAD_MUTEX_INITIALIZER;

int timedc_deferred_enter(void *back);
void *timedc_deferred_leave(void);

/* Whether the call shall come back by way of timedc_deferred_leave(). A handler of a signal that
 * comes in between leaves `backs` as it was. */
int timedc_deferred_enter(void *back)
{
	struct timedc_thread *thread = timedc_self;
	/* So many are under way already: nothing is aborted, whatever this call does. */
	if (!thread || thread->backs == TIMEDC_BACKS_MAX)
		return 0;
	timedc_defer();
	unsigned at = thread->backs;
	thread->backs = at + 1;
	thread->back[at] = back;
	return 1;
}

/* Where the call returns to. Does not return if the abort is due. */
void *timedc_deferred_leave(void)
{
	struct timedc_thread *thread = timedc_self;
	void *back = thread->back[thread->backs - 1];
	thread->backs--;
	timedc_resume(thread);
	return back;
}

/* --- pointers --------------------------------------------------------------------------------- */

/* Looks whether an address is a library's code. The program itself is the first object. */
static int look(struct dl_phdr_info *object, size_t size, void *argument)
{
	uintptr_t *at = argument;
	(void)size;
	for (unsigned i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		if (part->p_type == PT_LOAD && *at - object->dlpi_addr - part->p_vaddr < part->p_memsz)
			return part->p_flags & PF_X && object->dlpi_name[0] ? 1 : -1;
	}
	return 0;
}

extern int __real_pthread_mutex_lock(pthread_mutex_t *lock);
extern int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
extern int __real_dl_iterate_phdr(int (*function)(struct dl_phdr_info *, size_t, void *),
				  void *argument);

static void *entry_of(void *function)
{
	__real_pthread_mutex_lock(&pointers_lock);
	unsigned at = 0;
	while (at < pointer_count && timedc_pointers[at] != function)
		at++;
	if (at == timedc_pointer_max)
		timedc_die("the program asks dlsym for more than %d functions",
			   (int)timedc_pointer_max);
	timedc_pointers[at] = function;
	if (at == pointer_count)
		pointer_count++;
	__real_pthread_mutex_unlock(&pointers_lock);
	return (void *)(uintptr_t)(timedc_pointer_entries + at * ENTRY_OCTETS);
}

void *timedc_deferring(void *found)
{
	uintptr_t at = (uintptr_t)found;
	if (!found || __real_dl_iterate_phdr(look, &at) != 1)
		return found;
	return entry_of(found);
}
