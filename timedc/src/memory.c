/*
 * memory.c: allocation and locks. What a segment obtains keeps its abort waiting until it is given
 * back.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "wrap.h"

#include <errno.h>
#include <malloc.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

/* --- allocation ------------------------------------------------------------------------------- */

WRAP_GETS(void *, malloc, (size_t size), (size))
WRAP_GETS(void *, calloc, (size_t count, size_t size), (count, size))
WRAP_GETS(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size))
WRAP_GETS(void *, memalign, (size_t alignment, size_t size), (alignment, size))
WRAP_GETS(void *, valloc, (size_t size), (size))
WRAP_GETS(void *, pvalloc, (size_t size), (size))
WRAP_GETS(char *, strdup, (const char *text), (text))
WRAP_GETS(char *, __strdup, (const char *text), (text))
WRAP_GETS(char *, strndup, (const char *text, size_t size), (text, size))
WRAP_GETS(wchar_t *, wcsdup, (const wchar_t *text), (text))
WRAP_TAKES(int, posix_memalign, (void **out, size_t alignment, size_t size),
	   (out, alignment, size), *out)
WRAP_GIVES_VOID(free, (void *memory), (memory), memory)
WRAP(int, malloc_trim, (size_t pad), (pad))
#if __GLIBC_PREREQ(2, 33)
WRAP(struct mallinfo2, mallinfo2, (void), ())
#endif
WRAP_VOID(malloc_stats, (void), ())

/* What is new is held, and what moved: the caller does not know the new address yet. */
static void *moved(struct timedc_thread *thread, void *old, void *new, size_t size)
{
	if (new || size == 0)
		timedc_unhold(thread, old);
	if (new)
		timedc_hold(thread, new);
	return new;
}

WRAP_DECLARE(void *, realloc, (void *old, size_t size));
void *__wrap_realloc(void *old, size_t size)
{
	struct timedc_thread *thread = timedc_defer();
	void *new = moved(thread, old, __real_realloc(old, size), size);
	timedc_resume(thread);
	return new;
}

WRAP_DECLARE(void *, reallocarray, (void *old, size_t count, size_t size));
void *__wrap_reallocarray(void *old, size_t count, size_t size)
{
	struct timedc_thread *thread = timedc_defer();
	void *new = moved(thread, old, __real_reallocarray(old, count, size), count && size);
	timedc_resume(thread);
	return new;
}

/* --- locks of POSIX threads ------------------------------------------------------------------- */

typedef pthread_mutex_t mutex;
typedef pthread_rwlock_t rwlock;
typedef const struct timespec time_at;

WRAP_TAKES(int, pthread_mutex_timedlock, (mutex *lock, time_at *at), (lock, at), lock)
WRAP_TAKES(int, pthread_mutex_clocklock, (mutex *lock, clockid_t clock, time_at *at),
	   (lock, clock, at), lock)

/*
 * In virtual time a task that finds a mutex taken waits in the run, not in the system, so that time
 * advances. Taking one needs the processor, like all work: else a task could take it while a more
 * urgent one computes. So of those that wait the most urgent gets it. Who holds it is as urgent
 * meanwhile, as with PTHREAD_PRIO_INHERIT.
 */
static unsigned waiting;

/* Of the program's own calls. */
static bool is_in_virtual_time(const struct timedc_thread *thread)
{
	return thread && thread->deferred == 1 && timedc_backend_is_virtual() &&
	       !timedc_backend_stopped();
}

static const struct timedc_thread *holder_of(const mutex *lock)
{
	for (unsigned i = 0; i < timedc_thread_count(); i++)
		if (timedc_thread_at(i)->id == lock->__data.__owner && !timedc_thread_at(i)->over)
			return timedc_thread_at(i);
	return NULL;
}

/* Ends the program if those that it waits for wait for it: none of them would ever continue. */
static void look_for_circle(const struct timedc_thread *thread)
{
	char way[1024], lock[128], function[128];
	size_t length = 0;
	const struct timedc_thread *at = thread;
	do {
		const struct timedc_thread *holder = at->awaits ? holder_of(at->awaits) : NULL;
		if (!holder || length >= sizeof(way))
			return;
		timedc_symbol(at->awaits, lock, sizeof(lock));
		timedc_symbol(at->awaits_in, function, sizeof(function));
		length += (size_t)snprintf(way + length, sizeof(way) - length, "%s → %s (in %s) → ",
					   at->task->name, lock, function);
		at = holder;
	} while (at != thread);
	timedc_die("tasks deadlock on each other's locks, since %lld ns: %s%s",
		   (long long)timedc_now(), way, thread->task->name);
}

static int lock_in_virtual_time(struct timedc_thread *thread, mutex *lock, const void *from)
{
	/* As pthread_mutex_lock, which trylock is not: this tells who has taken it before. */
	struct timespec never = {0};
	const uint32_t *word = (const void *)lock;
	int result = ETIMEDOUT;
	while (result == ETIMEDOUT && is_in_virtual_time(thread)) {
		timedc_take_turn(thread);
		result = __real_pthread_mutex_timedlock(lock, &never);
		if (result != ETIMEDOUT)
			break;
		thread->awaits = lock;
		thread->awaits_in = from;
		look_for_circle(thread);
		waiting++;
		timedc_wait_for(word, lock->__data.__owner);
		waiting--;
		thread->awaits = NULL;
	}
	return result;
}

WRAP_DECLARE(int, pthread_mutex_lock, (mutex *lock));
int __wrap_pthread_mutex_lock(mutex *lock)
{
	struct timedc_thread *thread = timedc_defer();
	int result = ETIMEDOUT;
	if (is_in_virtual_time(thread))
		result = lock_in_virtual_time(thread, lock, __builtin_return_address(0));
	if (result == ETIMEDOUT)
		result = __real_pthread_mutex_lock(lock);
	if (result == 0)
		timedc_hold(thread, lock);
	timedc_resume(thread);
	return result;
}

/* One that is free is taken when it is the task's turn, too. */
WRAP_DECLARE(int, pthread_mutex_trylock, (mutex *lock));
int __wrap_pthread_mutex_trylock(mutex *lock)
{
	struct timedc_thread *thread = timedc_defer();
	if (is_in_virtual_time(thread))
		timedc_take_turn(thread);
	int result = __real_pthread_mutex_trylock(lock);
	if (result == 0)
		timedc_hold(thread, lock);
	timedc_resume(thread);
	return result;
}

WRAP_DECLARE(int, pthread_mutex_unlock, (mutex *lock));
int __wrap_pthread_mutex_unlock(mutex *lock)
{
	struct timedc_thread *thread = timedc_defer();
	timedc_unhold(thread, lock);
	int result = __real_pthread_mutex_unlock(lock);
	if (waiting > 0 && is_in_virtual_time(thread)) {
		timedc_wake((const void *)lock);
		timedc_hand_over();
	}
	timedc_resume(thread);
	return result;
}

WRAP_TAKES(int, pthread_rwlock_rdlock, (rwlock *lock), (lock), lock)
WRAP_TAKES(int, pthread_rwlock_tryrdlock, (rwlock *lock), (lock), lock)
WRAP_TAKES(int, pthread_rwlock_timedrdlock, (rwlock *lock, time_at *at), (lock, at), lock)
WRAP_TAKES(int, pthread_rwlock_clockrdlock, (rwlock *lock, clockid_t clock, time_at *at),
	   (lock, clock, at), lock)
WRAP_TAKES(int, pthread_rwlock_wrlock, (rwlock *lock), (lock), lock)
WRAP_TAKES(int, pthread_rwlock_trywrlock, (rwlock *lock), (lock), lock)
WRAP_TAKES(int, pthread_rwlock_timedwrlock, (rwlock *lock, time_at *at), (lock, at), lock)
WRAP_TAKES(int, pthread_rwlock_clockwrlock, (rwlock *lock, clockid_t clock, time_at *at),
	   (lock, clock, at), lock)
WRAP_GIVES(int, pthread_rwlock_unlock, (rwlock *lock), (lock), lock)
WRAP_TAKES(int, pthread_spin_lock, (pthread_spinlock_t *lock), (lock), (const void *)lock)
WRAP_TAKES(int, pthread_spin_trylock, (pthread_spinlock_t *lock), (lock), (const void *)lock)
WRAP_GIVES(int, pthread_spin_unlock, (pthread_spinlock_t *lock), (lock), (const void *)lock)
WRAP(int, pthread_cond_wait, (pthread_cond_t *condition, mutex *lock), (condition, lock))
WRAP(int, pthread_cond_timedwait, (pthread_cond_t *condition, mutex *lock, time_at *at),
     (condition, lock, at))
WRAP(int, pthread_cond_clockwait,
     (pthread_cond_t *condition, mutex *lock, clockid_t clock, time_at *at),
     (condition, lock, clock, at))
WRAP(int, pthread_cond_signal, (pthread_cond_t *condition), (condition))
WRAP(int, pthread_cond_broadcast, (pthread_cond_t *condition), (condition))
WRAP(int, pthread_cond_destroy, (pthread_cond_t *condition), (condition))
WRAP(int, pthread_barrier_wait, (pthread_barrier_t *barrier), (barrier))
WRAP(int, pthread_barrier_destroy, (pthread_barrier_t *barrier), (barrier))
WRAP(int, pthread_once, (pthread_once_t *once, void (*function)(void)), (once, function))
WRAP(int, pthread_join, (pthread_t id, void **out), (id, out))
WRAP(int, pthread_detach, (pthread_t id), (id))
WRAP(int, pthread_cancel, (pthread_t id), (id))
WRAP(int, pthread_kill, (pthread_t id, int number), (id, number))
WRAP(int, pthread_key_create, (pthread_key_t *key, void (*function)(void *)), (key, function))
WRAP(int, pthread_setspecific, (pthread_key_t key, const void *value), (key, value))
WRAP(int, pthread_setschedparam, (pthread_t id, int policy, const struct sched_param *parameters),
     (id, policy, parameters))
WRAP(int, pthread_getschedparam, (pthread_t id, int *policy, struct sched_param *parameters),
     (id, policy, parameters))
WRAP(int, pthread_setschedprio, (pthread_t id, int priority), (id, priority))
WRAP(int, pthread_getattr_np, (pthread_t id, pthread_attr_t *attributes), (id, attributes))
WRAP(int, pthread_setname_np, (pthread_t id, const char *name), (id, name))
WRAP(int, pthread_getname_np, (pthread_t id, char *name, size_t size), (id, name, size))
WRAP(int, sem_post, (sem_t *semaphore), (semaphore))
WRAP(int, sem_wait, (sem_t *semaphore), (semaphore))
WRAP(int, sem_trywait, (sem_t *semaphore), (semaphore))
WRAP(int, sem_timedwait, (sem_t *semaphore, time_at *at), (semaphore, at))
WRAP(int, sem_clockwait, (sem_t *semaphore, clockid_t clock, time_at *at), (semaphore, clock, at))
WRAP(int, sem_close, (sem_t *semaphore), (semaphore))
WRAP(int, sem_unlink, (const char *name), (name))

/* --- locks of C11 ----------------------------------------------------------------------------- */

WRAP_TAKES(int, mtx_lock, (mtx_t *lock), (lock), lock)
WRAP_TAKES(int, mtx_trylock, (mtx_t *lock), (lock), lock)
WRAP_TAKES(int, mtx_timedlock, (mtx_t *lock, time_at *at), (lock, at), lock)
WRAP_GIVES(int, mtx_unlock, (mtx_t *lock), (lock), lock)
WRAP(int, cnd_wait, (cnd_t *condition, mtx_t *lock), (condition, lock))
WRAP(int, cnd_timedwait, (cnd_t *condition, mtx_t *lock, time_at *at), (condition, lock, at))
WRAP(int, cnd_signal, (cnd_t *condition), (condition))
WRAP(int, cnd_broadcast, (cnd_t *condition), (condition))
WRAP_VOID(call_once, (once_flag *once, void (*function)(void)), (once, function))
WRAP(int, thrd_join, (thrd_t id, int *out), (id, out))
WRAP(int, tss_create, (tss_t *key, tss_dtor_t function), (key, function))
WRAP(int, tss_set, (tss_t key, void *value), (key, value))
