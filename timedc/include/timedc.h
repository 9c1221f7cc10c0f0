/*
 * timedc.h: what translated Timed C is made of, and what programs may call. The translator puts it
 * before a program's first line, so it includes nothing: the program's own feature macros come
 * first.
 *
 * docs/timed-c.md says what each construct means. Names that begin with timedc_ are reserved.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#ifdef __cplusplus
#error "Timed C is C: a C++ program uses onbeat.hpp"
#endif

/* Instants and lengths of time, in nanoseconds. */
typedef __INT64_TYPE__ timedc_ns;
#define TIMEDC_INFTY __INT64_MAX__
/* As a deadline: the period. */
#define TIMEDC_SAME (-1)

/* --- for programs ----------------------------------------------------------------------------- */

/* What a hard point's error handler is told. */
struct timedc_late {
	const char *task;
	const char *file;
	int line;
	timedc_ns overshoot_ns; /* arrival - deadline */
};
typedef void timedc_late_handler(const struct timedc_late *);

/* Sets the calling task's error handler; NULL is the default. */
void timedc_on_late(timedc_late_handler *handler);
/* A program may define it: the default error handler calls it first. It must not wait. */
void timedc_safe_state(void);
/* Whether the calling task came to its last timing point by an abort. */
int timedc_aborted(void);
/* Whether the calling task's phase is kept when a point is passed after its release. */
void timedc_keep_phase(int keep);
/* Calls function(argument) when the current segment is aborted; of several the last one first. What
 * it gives back no more delays the abort. -1 when the segment has 16 already. */
int timedc_on_abort(void (*function)(void *), void *argument);

/* --- for the translator ----------------------------------------------------------------------- */

enum timedc_kind { TIMEDC_SOFT, TIMEDC_FIRM, TIMEDC_HARD };

/* A timing point. */
struct timedc_point {
	const char *name; /* as the trace has it: "16", "16.2", "loop.h:12" */
	const char *function;
	const char *file;
	int line;
	unsigned char kind; /* an enum timedc_kind */
	signed char unit;   /* 0, -3, -6 or -9 */
};

/* A function's activation that has guards: where control continues after an abort. */
struct timedc_frame {
	void *jump[5]; /* of __builtin_setjmp */
	void (*leap)(void **jump);
};

/* A task, or main. Periods and deadlines are the shortest that are constant, 0 if there is none. */
struct timedc_task {
	const char *name;
	const char *file;
	int line;
	void (*body)(void *arguments);
	__SIZE_TYPE__ arguments_size;
	timedc_ns period_ns;
	timedc_ns deadline_ns;
	timedc_ns wcet_ns;
};

/* A network channel that an abstract one is. Its ends are the run time's: those that a unit uses,
 * as far as the description gives them to this host; and why it does not give others. */
struct timedc_bound {
	const char *channel;
	__SIZE_TYPE__ size; /* octets of a value */
	struct onbeat_talker *talker;
	struct onbeat_listener *listener;
	const char *refused[2]; /* the talker, the listener */
};

/* An end of a network channel that the unit names. `array` is net_fifo_chans or nc_channels, or
 * none: then it is the end of `bound`. */
struct timedc_net {
	const char *name;
	unsigned char is_talker;
	unsigned char is_first_generation; /* struct net_fifo, not struct channel_attrs */
	const void *array;
	int rows;
	struct timedc_bound *bound;
};

/* What one translation unit has; timedc_register is called by a constructor of the unit. */
struct timedc_unit {
	const struct timedc_task *const *tasks;
	int task_count;
	const struct timedc_net *nets;
	int net_count;
	unsigned char keep_phase; /* compiled with --keep-phase */
	unsigned char is_plain;   /* nothing of Timed C in it but main */
	const struct timedc_point *points; /* in the order of the text */
	int point_count;
	struct timedc_unit *next; /* the run time's */
};
void timedc_register(struct timedc_unit *unit);

/* main's scope: begins the program; at its end all tasks are joined. */
int timedc_main_enter(const struct timedc_task *main_task);
void timedc_main_leave(int *entered);
#define TIMEDC_MAIN(task) \
	__attribute__((cleanup(timedc_main_leave), unused)) int timedc_main = timedc_main_enter(task)

/* Starts a task with a copy of its arguments. The first call, timing point or network channel of
 * main is the program's start. */
void timedc_start(const struct timedc_task *task, const void *arguments);

/* Arrives at a timing point and waits; returns the overshoot in the point's unit. */
long timedc_point(const struct timedc_point *point, timedc_ns period, timedc_ns deadline);
long timedc_gettime(int unit);
/* `onbeat cc --origin function`: a function's points count from where it was called. Behind it its
 * caller's count from what they counted from before. */
timedc_ns timedc_origin_enter(void);
void timedc_origin_leave(timedc_ns *origin);
#define TIMEDC_ORIGIN \
	__attribute__((cleanup(timedc_origin_leave), unused)) timedc_ns timedc_origin = \
		timedc_origin_enter()
/* The next timing point does not wait. */
void timedc_skip(void);
/* Control comes to the end of a channel that stands at a place. */
extern _Bool timedc_tracing;
void timedc_reached(const char *place);
static inline void timedc_reach(const char *place)
{
	if (timedc_tracing)
		timedc_reached(place);
}

/* A number of a unit as nanoseconds: saturates; what is negative at run time is 0. */
static inline timedc_ns timedc_span(timedc_ns number, timedc_ns scale)
{
	timedc_ns span;
	if (number < 0)
		return 0;
	return __builtin_mul_overflow(number, scale, &span) ? TIMEDC_INFTY - 1 : span;
}

/*
 * Guards. TIMEDC_FRAME stands first in a function that has any. TIMEDC_GUARD makes `point` guard
 * what follows: at origin + deadline control goes to `label`, just before the point. It does
 * nothing when it does already. TIMEDC_REGUARD is for a deadline that has changed. TIMEDC_UNGUARD
 * ends a guard of this activation; so does the function's end.
 */
#define TIMEDC_FRAME \
	__attribute__((cleanup(timedc_frame_leave), unused)) struct timedc_frame timedc_frame = { \
		{0}, timedc_leap}
/* The jump of an abort. It is compiled with the program's own flags, of which some
 * (-fcf-protection, -fsanitize=address) change what a jump has to do, and not inlined:
 * __builtin_longjmp must not be in the function of its __builtin_setjmp. */
static __attribute__((noinline, noreturn, unused)) void timedc_leap(void **jump)
{
	__builtin_longjmp(jump, 1);
}
void timedc_frame_leave(struct timedc_frame *frame);
int timedc_guard_begins(const struct timedc_frame *frame, const struct timedc_point *point);
void timedc_guard(struct timedc_frame *frame, const struct timedc_point *point, timedc_ns deadline);
void timedc_unguard(struct timedc_frame *frame);
#define TIMEDC_GUARD(point, deadline, label) \
	do { \
		if (timedc_guard_begins(&timedc_frame, (point))) { \
			if (__builtin_setjmp(timedc_frame.jump)) \
				goto label; \
			timedc_guard(&timedc_frame, (point), (deadline)); \
		} \
	} while (0)
#define TIMEDC_REGUARD(point, deadline, label) \
	do { \
		if (__builtin_setjmp(timedc_frame.jump)) \
			goto label; \
		timedc_guard(&timedc_frame, (point), (deadline)); \
	} while (0)
#define TIMEDC_UNGUARD() timedc_unguard(&timedc_frame)

/* A local variable that an abort must find, and leave, in memory; and what brings it there. */
#define TIMEDC_KEEP(variable) __asm__ volatile("" : : "r"(&(variable)) : "memory")
#define TIMEDC_SYNC() __asm__ volatile("" : : : "memory")

/* A critical block's scope. */
int timedc_critical_enter(void);
void timedc_critical_leave(int *entered);
#define TIMEDC_CRITICAL \
	__attribute__((cleanup(timedc_critical_leave), unused)) int timedc_critical = \
		timedc_critical_enter()

/* Around a pointer that is called: what it leads to in a library returns before an abort. */
void (*timedc_through(void (*function)(void)))(void);
#define TIMEDC_THROUGH(...) \
	((__typeof__(&*(__VA_ARGS__)))timedc_through((void (*)(void))(__VA_ARGS__)))

/* So long passes in virtual time: the worst case, or the best if that is asked for. */
void timedc_work(timedc_ns bcet, timedc_ns wcet);

enum timedc_policy {
	TIMEDC_EDF, TIMEDC_FIFO_RM, TIMEDC_RR_RM, TIMEDC_FIFO_DM, TIMEDC_RR_DM,
};
void timedc_spolicy(enum timedc_policy policy);
void timedc_aperiodic(timedc_ns separation);
void timedc_spriority(int priority);

/* --- channels --------------------------------------------------------------------------------- */

/* A fifochannel: a bounded queue. The cells and the state are the run time's. */
struct timedc_cell {
	unsigned long long turn;
	unsigned next;
};
struct timedc_fifo {
	const char *name;
	void *values;
	struct timedc_cell *cells;
	unsigned size;     /* octets of a value */
	unsigned capacity; /* values */
	unsigned state[56];
} __attribute__((aligned(64)));

/* An lvchannel. At most this many threads may be in cread at the same instant. */
#define TIMEDC_READERS 30
struct timedc_latest {
	const char *name;
	void *values; /* TIMEDC_READERS and 2 */
	unsigned size;
	unsigned state[62];
} __attribute__((aligned(64)));

/* `storage` is empty, or static. */
#define TIMEDC_FIFO(storage, type, name, count) \
	storage type timedc_values_##name[count]; \
	storage struct timedc_cell timedc_cells_##name[count]; \
	storage struct timedc_fifo name = { \
		#name, timedc_values_##name, timedc_cells_##name, sizeof(type), (count), {0}}
#define TIMEDC_FIFO_EXTERN(type, name) \
	extern type timedc_values_##name[]; \
	extern struct timedc_fifo name
#define TIMEDC_LATEST(storage, type, name) \
	storage type timedc_values_##name[TIMEDC_READERS + 2]; \
	storage struct timedc_latest name = {#name, timedc_values_##name, sizeof(type), {0}}
#define TIMEDC_LATEST_EXTERN(type, name) \
	extern type timedc_values_##name[]; \
	extern struct timedc_latest name

int timedc_fifo_init(struct timedc_fifo *fifo, const void *value);
int timedc_fifo_write(struct timedc_fifo *fifo, const void *value);
int timedc_fifo_read(struct timedc_fifo *fifo, void *value);
int timedc_fifo_count(struct timedc_fifo *fifo);
int timedc_latest_init(struct timedc_latest *latest, const void *value);
int timedc_latest_write(struct timedc_latest *latest, const void *value);
int timedc_latest_read(struct timedc_latest *latest, void *value);
int timedc_latest_count(struct timedc_latest *latest);

/* Write and read what abstract channels are: 0, or negative as the library's functions. */
int timedc_bound_write(struct timedc_bound *bound, const void *value);
int timedc_bound_read(struct timedc_bound *bound, void *value);

/* What chan_write and chan_read of an abstract channel `chan` become. Units of one program mean the
 * same channel, so it is there once: weak. */
#define TIMEDC_BOUND_FIFO(type, name, count) \
	__attribute__((weak)) type timedc_values_of_##name[count]; \
	__attribute__((weak)) struct timedc_cell timedc_cells_of_##name[count]; \
	__attribute__((weak)) struct timedc_fifo timedc_fifo_of_##name = { \
		#name, timedc_values_of_##name, timedc_cells_of_##name, sizeof(type), (count), {0}}; \
	TIMEDC_BOUND(type, name, fifo)
#define TIMEDC_BOUND_NETWORK(type, name, network) \
	__attribute__((weak)) struct timedc_bound timedc_bound_of_##name = { \
		#network, sizeof(type), 0, 0, {0, 0}}; \
	TIMEDC_BOUND(type, name, bound)
#define TIMEDC_BOUND(type, name, kind) \
	static inline __attribute__((unused)) int timedc_write_##name(type timedc_value) \
	{ \
		return timedc_##kind##_write(&timedc_##kind##_of_##name, &timedc_value); \
	} \
	static inline __attribute__((unused)) type timedc_read_##name(void) \
	{ \
		type timedc_value = 0; \
		timedc_##kind##_read(&timedc_##kind##_of_##name, &timedc_value); \
		return timedc_value; \
	}

/* The start of a task that does not run on this host. */
#define TIMEDC_ELSEWHERE(task, arguments) ((void)(task), (void)(arguments))

/* The translator reads the program without these, so that it sees the constructs themselves. */
#ifndef TIMEDC_TRANSLATING
#define TIMEDC_DO(what, c) \
	_Generic(&(c), struct timedc_fifo *: timedc_fifo_##what, \
		 struct timedc_latest *: timedc_latest_##what)
/* The value may have commas of its own, as a compound literal has. */
#define TIMEDC_GIVE(what, c, ...) \
	__extension__({ \
		__typeof__(timedc_values_##c[0]) timedc_value = (__VA_ARGS__); \
		TIMEDC_DO(what, c)(&(c), &timedc_value); \
	})
#define cinit(c, ...) TIMEDC_GIVE(init, c, __VA_ARGS__)
#define cwrite(c, ...) TIMEDC_GIVE(write, c, __VA_ARGS__)
#define cread(c, v) \
	__extension__({ \
		__typeof__(timedc_values_##c[0]) timedc_value; \
		int timedc_result = TIMEDC_DO(read, c)(&(c), &timedc_value); \
		(v) = timedc_value; \
		timedc_result; \
	})
#define nelem(c) TIMEDC_DO(count, c)(&(c))
#endif
