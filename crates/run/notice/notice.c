/*
 * Notices what a program takes from elsewhere in virtual time: `onbeat run --verify` has this
 * object preloaded (crates/run/src/notices.rs). Each function here notes that it was called, and
 * from where, in memory that the run shares; then it calls the C library's.
 *
 * What the C library, the dynamic loader and Onbeat's own library do does not pass here: the first
 * two call themselves directly, and Onbeat's library makes system calls without them. A thread that
 * it creates is the run's when it has joined, which the reader knows by its number.
 *
 * Noting is lock-free and allocates nothing, so a signal may interrupt it anywhere; a program that
 * is killed leaves what was noted. Who reads the memory does not trust it.
 */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* Also in notices.rs: the memory's layout. */
#define SITES 1024
#define THREADS 16384
#define FUNCTION_MAX 32
#define OBJECT_MAX 224

enum kind { CLOCK, WAIT, RANDOMNESS, THREAD, PROCESS };
enum phase { BEFORE, IN_RUN, OVER };

/* A place that calls a function. */
struct site {
	_Atomic uint64_t key; /* 0: free */
	_Atomic uint64_t count;
	int64_t first_ns;
	uint64_t address;
	uint64_t base; /* where its object begins in memory */
	uint32_t pid, tid, kind, phase;
	_Atomic uint32_t is_complete;
	uint32_t unused;
	char function[FUNCTION_MAX];
	char object[OBJECT_MAX];
};

/* A thread that was created, by the site after this one's place. */
struct thread {
	_Atomic uint32_t site; /* its place and 1 */
	uint32_t tid;
};

struct table {
	_Atomic uint64_t phase; /* the reader writes it, and the next */
	_Atomic int64_t now_ns;
	_Atomic uint64_t left_out;
	_Atomic uint64_t threads;
	uint64_t unused[4];
	struct site sites[SITES];
	struct thread created[THREADS];
};
_Static_assert(sizeof(struct site) == 320, "as notices.rs has it");
_Static_assert(offsetof(struct table, created) == 64 + SITES * 320, "as notices.rs has it");

static struct table *table;
static uint32_t process;
/* Above 0: the calling thread does what Onbeat's own C code needs. */
static __thread int own __attribute__((tls_model("initial-exec")));

#define SHOWN __attribute__((visibility("default")))
#define CALLER ((char *)__builtin_return_address(0) - 1)

/* compat/ calls it where it uses threads or time of the machine for itself. A thread that is
 * created meanwhile is its own as a whole. */
SHOWN void onbeat_notice_own(int change);
void onbeat_notice_own(int change)
{
	own += change;
}

/* --- where an address is ---------------------------------------------------------------------- */

/* A line of /proc/self/maps, as far as it is read. */
struct line {
	uint64_t numbers[5]; /* begin, end, offset, and two of the device */
	unsigned field, length;
	uint64_t inode;
	char path[OBJECT_MAX];
};

static void take(struct line *line, char c)
{
	bool is_digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
	uint64_t digit = c <= '9' ? (uint64_t)(c - '0') : (uint64_t)(c - 'a' + 10);
	switch (line->field) {
	case 0: case 1: case 3: case 4: case 5: /* begin - end ... offset major : minor */
		if (is_digit) {
			uint64_t *number = &line->numbers[line->field - (line->field > 1)];
			*number = *number << 4 | digit;
		} else {
			line->field++;
		}
		return;
	case 2: /* rights */
		line->field += c == ' ';
		return;
	case 6:
		if (is_digit)
			line->inode = line->inode * 10 + digit;
		else
			line->field++;
		return;
	default:
		if (line->length == 0 && c == ' ')
			return;
		if (line->length == OBJECT_MAX - 1) { /* its end says more */
			memmove(line->path, line->path + 1, --line->length);
		}
		line->path[line->length++] = c;
		line->path[line->length] = 0;
	}
}

/* The object that an address is in, and where that begins. By system calls: dladdr(3) may lock. */
static void locate(struct site *site)
{
	int maps = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
	uint64_t base = 0, inode = 0;
	struct line line = {.field = 0};
	char some[256];
	long length;
	while (maps >= 0 && (length = syscall(SYS_read, maps, some, sizeof(some))) > 0) {
		for (long i = 0; i < length; i++) {
			if (some[i] != '\n') {
				take(&line, some[i]);
				continue;
			}
			if (line.numbers[2] == 0 || line.inode != inode)
				base = line.numbers[0];
			inode = line.inode;
			if (site->address >= line.numbers[0] && site->address < line.numbers[1]) {
				site->base = base;
				memcpy(site->object, line.path, OBJECT_MAX);
				length = 0;
			}
			memset(&line, 0, sizeof(line));
		}
		if (site->base)
			break;
	}
	if (maps >= 0)
		syscall(SYS_close, maps);
}

/* --- noting ----------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

/* Notes a call; returns its site, or NULL. Leaves errno as it is. */
static struct site *note(enum kind kind, const char *function, const void *from)
{
	struct table *all = table;
	uint64_t phase = all ? atomic_load(&all->phase) : OVER;
	if (own > 0 || phase == OVER)
		return NULL;
	uint64_t address = (uint64_t)(uintptr_t)from;
	uint64_t key = mix(address) ^ mix((uint64_t)(uintptr_t)function + phase) ^ mix(process);
	key += key == 0;
	for (unsigned i = 0; i < SITES; i++) {
		struct site *site = &all->sites[(key + i) % SITES];
		uint64_t there = 0;
		if (!atomic_compare_exchange_strong(&site->key, &there, key)) {
			if (there != key)
				continue;
			atomic_fetch_add(&site->count, 1);
			return site;
		}
		int before = errno;
		atomic_fetch_add(&site->count, 1);
		site->first_ns = atomic_load(&all->now_ns);
		site->address = address;
		site->pid = process;
		site->tid = (uint32_t)syscall(SYS_gettid);
		site->kind = kind;
		site->phase = (uint32_t)phase;
		strncpy(site->function, function, FUNCTION_MAX - 1);
		locate(site);
		atomic_store(&site->is_complete, 1);
		errno = before;
		return site;
	}
	atomic_fetch_add(&all->left_out, 1);
	return NULL;
}

/* --- functions that are called as they are ---------------------------------------------------- */

static bool lasts(const struct timespec *time)
{
	return time && (time->tv_sec > 0 || time->tv_nsec > 0);
}

static bool lasts_us(const struct timeval *time)
{
	return time && (time->tv_sec > 0 || time->tv_usec > 0);
}

/* What sets a timer of the machine, and what stops one. */
static bool sets(const struct itimerspec *time)
{
	return time && lasts(&time->it_value);
}

struct itimer {
	struct timeval interval, value;
};

#define EACH(X) \
	X(CLOCK, 1, int, clock_gettime, (int clock, void *to), (clock, to)) \
	X(CLOCK, 1, int, gettimeofday, (void *to, void *zone), (to, zone)) \
	X(CLOCK, 1, time_t, time, (time_t *to), (to)) \
	X(CLOCK, 1, clock_t, clock, (void), ()) \
	X(CLOCK, 1, clock_t, times, (void *to), (to)) \
	X(CLOCK, 1, int, timespec_get, (void *to, int base), (to, base)) \
	X(CLOCK, 1, int, getrusage, (int who, void *to), (who, to)) \
	X(WAIT, 1, int, nanosleep, (const void *time, void *left), (time, left)) \
	X(WAIT, 1, int, clock_nanosleep, (int clock, int flags, const void *time, void *left), \
	  (clock, flags, time, left)) \
	X(WAIT, 1, int, usleep, (unsigned us), (us)) \
	X(WAIT, 1, unsigned, sleep, (unsigned s), (s)) \
	X(WAIT, 1, int, thrd_sleep, (const void *time, void *left), (time, left)) \
	X(WAIT, ms > 0, int, poll, (void *fds, nfds_t count, int ms), (fds, count, ms)) \
	X(WAIT, ms > 0, int, __poll_chk, (void *fds, nfds_t count, int ms, size_t room), \
	  (fds, count, ms, room)) \
	X(WAIT, lasts(time), int, ppoll, \
	  (void *fds, nfds_t count, const struct timespec *time, const void *mask), \
	  (fds, count, time, mask)) \
	X(WAIT, lasts(time), int, __ppoll_chk, \
	  (void *fds, nfds_t count, const struct timespec *time, const void *mask, size_t room), \
	  (fds, count, time, mask, room)) \
	X(WAIT, lasts_us(time), int, select, \
	  (int count, void *in, void *out, void *other, struct timeval *time), \
	  (count, in, out, other, time)) \
	X(WAIT, lasts(time), int, pselect, \
	  (int count, void *in, void *out, void *other, const struct timespec *time, \
	   const void *mask), (count, in, out, other, time, mask)) \
	X(WAIT, ms > 0, int, epoll_wait, (int fd, void *events, int room, int ms), \
	  (fd, events, room, ms)) \
	X(WAIT, ms > 0, int, epoll_pwait, (int fd, void *events, int room, int ms, const void *mask), \
	  (fd, events, room, ms, mask)) \
	X(WAIT, lasts(time), int, epoll_pwait2, \
	  (int fd, void *events, int room, const struct timespec *time, const void *mask), \
	  (fd, events, room, time, mask)) \
	X(WAIT, lasts(time), int, sigtimedwait, \
	  (const void *set, void *found, const struct timespec *time), (set, found, time)) \
	X(WAIT, 1, int, sem_timedwait, (void *sem, const void *until), (sem, until)) \
	X(WAIT, 1, int, sem_clockwait, (void *sem, int clock, const void *until), \
	  (sem, clock, until)) \
	X(WAIT, 1, int, pthread_cond_timedwait, (void *cond, void *lock, const void *until), \
	  (cond, lock, until)) \
	X(WAIT, 1, int, pthread_cond_clockwait, \
	  (void *cond, void *lock, int clock, const void *until), (cond, lock, clock, until)) \
	X(WAIT, 1, int, pthread_mutex_timedlock, (void *lock, const void *until), (lock, until)) \
	X(WAIT, 1, int, pthread_mutex_clocklock, (void *lock, int clock, const void *until), \
	  (lock, clock, until)) \
	X(WAIT, 1, int, cnd_timedwait, (void *cond, void *lock, const void *until), \
	  (cond, lock, until)) \
	X(WAIT, 1, int, mtx_timedlock, (void *lock, const void *until), (lock, until)) \
	X(WAIT, s > 0, unsigned, alarm, (unsigned s), (s)) \
	X(WAIT, time && lasts_us(&time->value), int, setitimer, \
	  (int which, const struct itimer *time, void *before), (which, time, before)) \
	X(WAIT, sets(time), int, timer_settime, \
	  (void *timer, int flags, const struct itimerspec *time, void *before), \
	  (timer, flags, time, before)) \
	X(WAIT, sets(time), int, timerfd_settime, \
	  (int timer, int flags, const struct itimerspec *time, void *before), \
	  (timer, flags, time, before)) \
	X(RANDOMNESS, 1, ssize_t, getrandom, (void *to, size_t room, unsigned flags), \
	  (to, room, flags)) \
	X(RANDOMNESS, 1, int, getentropy, (void *to, size_t room), (to, room)) \
	X(RANDOMNESS, 1, uint32_t, arc4random, (void), ()) \
	X(RANDOMNESS, 1, uint32_t, arc4random_uniform, (uint32_t below), (below)) \
	X(RANDOMNESS, 1, unsigned, _ZNSt13random_device9_M_getvalEv, (void *device), (device)) \
	X(RANDOMNESS, is_random(path), FILE *, fopen, (const char *path, const char *mode), \
	  (path, mode)) \
	X(RANDOMNESS, is_random(path), FILE *, fopen64, (const char *path, const char *mode), \
	  (path, mode)) \
	X(RANDOMNESS, is_random(path), int, __open_2, (const char *path, int flags), (path, flags)) \
	X(RANDOMNESS, is_random(path), int, __open64_2, (const char *path, int flags), (path, flags)) \
	X(RANDOMNESS, is_random(path), int, __openat_2, (int at, const char *path, int flags), \
	  (at, path, flags)) \
	X(RANDOMNESS, is_random(path), int, __openat64_2, (int at, const char *path, int flags), \
	  (at, path, flags)) \
	X(PROCESS, 1, int, posix_spawn, \
	  (pid_t *pid, const char *path, const void *actions, const void *attributes, void *words, \
	   void *environment), (pid, path, actions, attributes, words, environment)) \
	X(PROCESS, 1, int, posix_spawnp, \
	  (pid_t *pid, const char *path, const void *actions, const void *attributes, void *words, \
	   void *environment), (pid, path, actions, attributes, words, environment)) \
	X(PROCESS, 1, int, system, (const char *command), (command)) \
	X(PROCESS, 1, FILE *, popen, (const char *command, const char *mode), (command, mode))

/* Those that need more. */
#define OTHERS(X) \
	X(arc4random_buf) X(open) X(open64) X(openat) X(openat64) X(pthread_create) X(thrd_create) \
	X(fork) X(_Fork) X(vfork) X(clone)

#define NUMBER(kind, condition, type, name, parameters, arguments) OF_##name,
#define OTHER_NUMBER(name) OF_##name,
#define NAME(kind, condition, type, name, parameters, arguments) #name,
#define OTHER_NAME(name) #name,
enum function { EACH(NUMBER) OTHERS(OTHER_NUMBER) FUNCTIONS };
static const char *const names[FUNCTIONS] = {EACH(NAME) OTHERS(OTHER_NAME)};
static void *_Atomic reals[FUNCTIONS];

/* The C library's function. It was found when this object was loaded, unless another object was
 * initialised before it, or the library came later. */
static void *real(enum function function)
{
	void *found = atomic_load_explicit(&reals[function], memory_order_acquire);
	if (!found) {
		found = dlsym(RTLD_NEXT, names[function]);
		atomic_store_explicit(&reals[function], found, memory_order_release);
	}
	if (!found) /* no program is linked with what its libraries lack */
		abort();
	return found;
}

static bool is_random(const char *path)
{
	return path && (strcmp(path, "/dev/urandom") == 0 || strcmp(path, "/dev/random") == 0);
}

/* The name in C is another one, so that no header has a word in it. */
#define DECLARED(type, name, parameters) \
	SHOWN type noting_##name parameters __asm__(#name); \
	type noting_##name parameters

#define DEFINE(kind, condition, type, name, parameters, arguments) \
	DECLARED(type, name, parameters) \
	{ \
		if (condition) \
			note(kind, names[OF_##name], CALLER); \
		return ((type(*) parameters)real(OF_##name))arguments; \
	}
EACH(DEFINE)

DECLARED(void, arc4random_buf, (void *to, size_t room))
{
	note(RANDOMNESS, names[OF_arc4random_buf], CALLER);
	((void (*)(void *, size_t))real(OF_arc4random_buf))(to, room);
}

/* --- files ------------------------------------------------------------------------------------ */

#define MODE_OF(flags, last, mode) \
	do { \
		if ((flags) & (O_CREAT | __O_TMPFILE)) { \
			va_list more; \
			va_start(more, last); \
			mode = va_arg(more, mode_t); \
			va_end(more); \
		} \
	} while (0)

#define OPEN(name) \
	DECLARED(int, name, (const char *path, int flags, ...)) \
	{ \
		mode_t mode = 0; \
		MODE_OF(flags, flags, mode); \
		if (is_random(path)) \
			note(RANDOMNESS, names[OF_##name], CALLER); \
		return ((int (*)(const char *, int, ...))real(OF_##name))(path, flags, mode); \
	}
OPEN(open)
OPEN(open64)

#define OPEN_AT(name) \
	DECLARED(int, name, (int at, const char *path, int flags, ...)) \
	{ \
		mode_t mode = 0; \
		MODE_OF(flags, flags, mode); \
		if (is_random(path)) \
			note(RANDOMNESS, names[OF_##name], CALLER); \
		return ((int (*)(int, const char *, int, ...))real(OF_##name))(at, path, flags, mode); \
	}
OPEN_AT(openat)
OPEN_AT(openat64)

/* --- threads ---------------------------------------------------------------------------------- */

/* What a thread begins with. */
struct beginning {
	union {
		void *(*posix)(void *);
		int (*standard)(void *);
	} body;
	void *argument;
	struct site *site;
	int own;
};

/* In the new thread: says which it is, and takes what it begins with. */
static struct beginning begin(void *argument)
{
	struct beginning it = *(struct beginning *)argument;
	free(argument);
	own = it.own;
	if (!it.site)
		return it;
	uint64_t at = atomic_fetch_add(&table->threads, 1);
	if (at < THREADS) {
		table->created[at].tid = (uint32_t)syscall(SYS_gettid);
		atomic_store(&table->created[at].site, (uint32_t)(it.site - table->sites) + 1);
	} else { /* whether it joins the run is not known any more */
		atomic_fetch_sub(&it.site->count, 1);
		atomic_fetch_add(&table->left_out, 1);
	}
	return it;
}

static void *begin_posix(void *argument)
{
	struct beginning it = begin(argument);
	return it.body.posix(it.argument);
}

static int begin_standard(void *argument)
{
	struct beginning it = begin(argument);
	return it.body.standard(it.argument);
}

static struct beginning *beginning(enum function function, void *argument, const void *from)
{
	struct beginning *it = malloc(sizeof(*it));
	if (it)
		*it = (struct beginning){.argument = argument, .own = own};
	if (it)
		it->site = note(THREAD, names[function], from);
	return it;
}

/* A thread that could not be created is none. */
static void not_begun(struct beginning *it)
{
	if (it->site)
		atomic_fetch_sub(&it->site->count, 1);
	free(it);
}

DECLARED(int, pthread_create,
	 (pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument))
{
	struct beginning *it = beginning(OF_pthread_create, argument, CALLER);
	if (!it)
		return EAGAIN;
	it->body.posix = body;
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		real(OF_pthread_create);
	int failed = create(thread, attributes, begin_posix, it);
	if (failed)
		not_begun(it);
	return failed;
}

DECLARED(int, thrd_create, (thrd_t *thread, thrd_start_t body, void *argument))
{
	struct beginning *it = beginning(OF_thrd_create, argument, CALLER);
	if (!it)
		return thrd_nomem;
	it->body.standard = body;
	int failed = ((int (*)(thrd_t *, thrd_start_t, void *))real(OF_thrd_create))(
		thread, begin_standard, it);
	if (failed != thrd_success)
		not_begun(it);
	return failed;
}

/* --- processes -------------------------------------------------------------------------------- */

/* What a child does is its own: the reader takes what the run's process did. */
#define FORK(name) \
	DECLARED(pid_t, name, (void)) \
	{ \
		note(PROCESS, names[OF_##name], CALLER); \
		pid_t child = ((pid_t(*)(void))real(OF_##name))(); \
		if (child == 0) \
			process = (uint32_t)getpid(); \
		return child; \
	}
FORK(fork)
FORK(_Fork)

DECLARED(int, clone, (int (*body)(void *), void *stack, int flags, void *argument, ...))
{
	va_list more;
	va_start(more, argument);
	void *parent = va_arg(more, void *), *tls = va_arg(more, void *);
	void *child = va_arg(more, void *);
	va_end(more);
	note(PROCESS, names[OF_clone], CALLER);
	int (*call)(int (*)(void *), void *, int, void *, ...) = real(OF_clone);
	return call(body, stack, flags, argument, parent, tls, child);
}

/* The child of vfork(2) uses its parent's stack and returns first, so nothing may be on that: the
 * call is a jump, after the note. */
void *onbeat_noting_vfork(const char *after) __attribute__((visibility("hidden")));
void *onbeat_noting_vfork(const char *after)
{
	note(PROCESS, names[OF_vfork], after - 1);
	return real(OF_vfork);
}

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
	".globl vfork\n"
	".type vfork, @function\n"
	"vfork:\n"
	".cfi_startproc\n"
	"	endbr64\n"
	"	movq (%rsp), %rdi\n"
	"	subq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call onbeat_noting_vfork\n"
	"	addq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	jmp *%rax\n"
	".cfi_endproc\n"
	".size vfork, . - vfork\n"
	".popsection\n");
#elif defined(__aarch64__)
__asm__(".pushsection .text\n"
	".globl vfork\n"
	".type vfork, %function\n"
	"vfork:\n"
	"	hint #34\n" /* bti c */
	"	stp x29, x30, [sp, #-16]!\n"
	"	mov x0, x30\n"
	"	bl onbeat_noting_vfork\n"
	"	mov x16, x0\n"
	"	ldp x29, x30, [sp], #16\n"
	"	br x16\n"
	".size vfork, . - vfork\n"
	".popsection\n");
#endif

/* --- the beginning ---------------------------------------------------------------------------- */

__attribute__((constructor)) static void load(void)
{
	for (unsigned function = 0; function < FUNCTIONS; function++)
		atomic_store(&reals[function], dlsym(RTLD_NEXT, names[function]));
	dlerror(); /* some are not there, which is no error of the program's */
	const char *path = secure_getenv("ONBEAT_NOTICES");
	int memory = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
	if (memory < 0)
		return;
	void *place = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	syscall(SYS_close, memory);
	process = (uint32_t)getpid();
	if (place != MAP_FAILED)
		table = place;
}
