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
	/* So many are in progress already: nothing is aborted, whatever this call does. */
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
		uintptr_t begin = object->dlpi_addr + part->p_vaddr;
		if (part->p_type == PT_LOAD && *at >= begin && *at - begin < part->p_memsz)
			return part->p_flags & PF_X && object->dlpi_name[0] ? 1 : -1;
	}
	return 0;
}

extern int __real_pthread_mutex_lock(pthread_mutex_t *lock);
extern int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
extern int __real_dl_iterate_phdr(int (*function)(struct dl_phdr_info *, size_t, void *),
				  void *argument);

/* The entry of what is called so already. */
static void *known(const void *function)
{
	unsigned count = __atomic_load_n(&pointer_count, __ATOMIC_ACQUIRE);
	for (unsigned at = 0; at < count; at++)
		if (timedc_pointers[at] == function)
			return (void *)(uintptr_t)(timedc_pointer_entries + at * ENTRY_OCTETS);
	return NULL;
}

static void *entry_of(void *function)
{
	__real_pthread_mutex_lock(&pointers_lock);
	void *entry = known(function);
	if (!entry) {
		if (pointer_count == timedc_pointer_max)
			timedc_die("pointers lead to more than %u functions of libraries",
				   timedc_pointer_max);
		timedc_pointers[pointer_count] = function;
		__atomic_store_n(&pointer_count, pointer_count + 1, __ATOMIC_RELEASE);
		entry = known(function);
	}
	__real_pthread_mutex_unlock(&pointers_lock);
	return entry;
}

void *timedc_deferring(void *found)
{
	void *entry = known(found);
	uintptr_t at = (uintptr_t)found;
	if (entry || !found || __real_dl_iterate_phdr(look, &at) != 1)
		return entry ? entry : found;
	return entry_of(found);
}

/* The program itself, as the linker made it. */
extern const char __ehdr_start[] __attribute__((weak, visibility("hidden")));
extern const char etext[] __attribute__((weak, visibility("hidden")));

void (*timedc_through(void (*function)(void)))(void)
{
	uintptr_t at = (uintptr_t)function;
	bool is_own = at >= (uintptr_t)__ehdr_start && at < (uintptr_t)etext;
	if (is_own || !timedc_self)
		return function;
	struct timedc_thread *thread = timedc_defer();
	function = (void (*)(void))(uintptr_t)timedc_deferring((void *)at);
	timedc_resume(thread);
	return function;
}
