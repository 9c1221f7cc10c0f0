/*
 * The run time of translated Timed C on FreeRTOS, on the kernel's public API alone. Time is the
 * tick count. A task aborts itself, at a poll: so an abort never comes in the middle of a call.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include <timedc_freertos.h>

#include <FreeRTOS.h>
#include <queue.h>
#include <task.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef timedc_spolicy

#ifndef TIMEDC_STACK_DEPTH
#define TIMEDC_STACK_DEPTH (4 * configMINIMAL_STACK_SIZE)
#endif
/* The task's thread-local storage pointer that is ours. */
#ifndef TIMEDC_STORAGE
#define TIMEDC_STORAGE 0
#endif

#if configSUPPORT_STATIC_ALLOCATION != 1 || configSUPPORT_DYNAMIC_ALLOCATION != 1
#error "Timed C needs configSUPPORT_STATIC_ALLOCATION and configSUPPORT_DYNAMIC_ALLOCATION"
#endif
#if configNUM_THREAD_LOCAL_STORAGE_POINTERS <= TIMEDC_STORAGE
#error "Timed C needs a thread-local storage pointer: configNUM_THREAD_LOCAL_STORAGE_POINTERS"
#endif

#define TICK_NS (1000000000LL / configTICK_RATE_HZ)
#define ON_ABORT_MAX 16

/* A task of the program, or main. */
struct state {
	const struct timedc_task *task; /* NULL in main before timedc_main_enter */
	timedc_ns origin;
	timedc_late_handler *on_late;
	unsigned char keep_phase, skip, aborted;
	int critical;
	/* The guard; none if there is no point. */
	struct timedc_frame *frame;
	const struct timedc_point *point;
	timedc_ns deadline;    /* from the origin */
	timedc_ns deadline_at; /* TIMEDC_INFTY: never */
	/* What to do when the segment is aborted. */
	int on_abort_count;
	struct {
		void (*function)(void *);
		void *argument;
	} on_abort[ON_ABORT_MAX];
	long long arguments[]; /* aligned as the kernel's memory is: by 8 */
};

/* The program that main is of. */
static struct {
	int (*program)(int, char **);
	int argc;
	char **argv;
	void (*ended)(int status);
	TaskHandle_t main_task;
	unsigned running; /* tasks that main has to wait for */
	unsigned char is_begun;
	timedc_ns start;
	struct timedc_unit *units;
} the;

__attribute__((weak)) void timedc_safe_state(void);
__attribute__((weak)) void timedc_traced(timedc_ns at, const char *task, const char *event,
					 const char *place, timedc_ns value);

__attribute__((weak)) void timedc_say(const char *line)
{
	fprintf(stderr, "%s\n", line);
}

/* --- time ------------------------------------------------------------------------------------- */

/* Ticks without end: the count of the kernel wraps. Exact as long as somebody asks once a wrap. */
static timedc_ns ticks(void)
{
	static TickType_t last;
	static timedc_ns wrapped;
	timedc_ns now;

	vTaskSuspendAll();
	TickType_t count = xTaskGetTickCount();
	if (count < last)
		wrapped += (timedc_ns)(TickType_t)-1 + 1;
	last = count;
	now = wrapped + count;
	(void)xTaskResumeAll();
	return now;
}

static timedc_ns later(timedc_ns at, timedc_ns span)
{
	timedc_ns sum;

	return span == TIMEDC_INFTY || __builtin_add_overflow(at, span, &sum) ? TIMEDC_INFTY : sum;
}

static timedc_ns now_ns(void)
{
	return ticks() * TICK_NS;
}

/* How many ticks from now an instant has been reached; no more than can be waited at once. */
static TickType_t ticks_until(timedc_ns at)
{
	const timedc_ns most = portMAX_DELAY / 2;
	timedc_ns left = at / TICK_NS + (at % TICK_NS != 0) - ticks();

	return (TickType_t)(left < 0 ? 0 : left > most ? most : left);
}

static void sleep_until(timedc_ns at)
{
	for (;;) {
		/* Read first: a tick that passes in between makes it look again, not sleep longer. */
		TickType_t from = xTaskGetTickCount();
		TickType_t left = ticks_until(at);
		if (left == 0)
			return;
		(void)xTaskDelayUntil(&from, left);
	}
}

static timedc_ns unit_ns(int unit)
{
	return unit == 0 ? 1000000000 : unit == -3 ? 1000000 : unit == -6 ? 1000 : 1;
}

/* --- tasks ------------------------------------------------------------------------------------ */

static struct state *self(void)
{
	return pvTaskGetThreadLocalStoragePointer(NULL, TIMEDC_STORAGE);
}

/* The program's start: the first of its constructs that main comes to. */
static struct state *begun(void)
{
	struct state *state = self();

	configASSERT(state); /* timing points are for tasks of the program */
	if (!the.is_begun) {
		the.is_begun = 1;
		the.start = now_ns();
		state->origin = the.start;
	}
	return state;
}

static void trace(const struct state *state, timedc_ns at, const char *event, const char *place,
		  timedc_ns value)
{
	if (timedc_traced)
		timedc_traced(at - the.start, state->task ? state->task->name : "main", event,
			      place, value);
}

static timedc_ns rank_key(const struct timedc_task *task, int by_deadline)
{
	timedc_ns key = by_deadline ? task->deadline_ns : task->period_ns;

	return key > 0 ? key : TIMEDC_INFTY;
}

/* The shorter the period or deadline among the program's, the higher; without one it is lowest. */
static UBaseType_t priority_of(timedc_ns key, int by_deadline)
{
	const UBaseType_t least = tskIDLE_PRIORITY + 1;
	UBaseType_t longer = 0;

	if (key == TIMEDC_INFTY)
		return least;
	for (const struct timedc_unit *unit = the.units; unit; unit = unit->next)
		for (int i = 0; i < unit->task_count; i++) {
			timedc_ns other = rank_key(unit->tasks[i], by_deadline);
			longer += other > key && other != TIMEDC_INFTY;
		}
	if (longer > configMAX_PRIORITIES - 2 - least)
		longer = configMAX_PRIORITIES - 2 - least;
	return least + 1 + longer;
}

void timedc_register(struct timedc_unit *unit)
{
	unit->next = the.units;
	the.units = unit;
}

static int keeps_phase(const struct timedc_task *task)
{
	for (const struct timedc_unit *unit = the.units; unit; unit = unit->next)
		for (int i = 0; i < unit->task_count; i++)
			if (unit->tasks[i] == task)
				return unit->keep_phase;
	return 0;
}

static void run(void *argument)
{
	struct state *state = argument;

	vTaskSetThreadLocalStoragePointer(NULL, TIMEDC_STORAGE, state);
	trace(state, state->origin, "start", "", 0);
	state->task->body(state->arguments);
	trace(state, now_ns(), "end", "", 0);
	vTaskSetThreadLocalStoragePointer(NULL, TIMEDC_STORAGE, NULL);
	vPortFree(state);
	taskENTER_CRITICAL();
	the.running--;
	taskEXIT_CRITICAL();
	xTaskNotifyGive(the.main_task);
	vTaskDelete(NULL);
}

static _Noreturn void out_of_memory(const char *task)
{
	char line[160];

	snprintf(line, sizeof(line), "onbeat: task %s: FreeRTOS has no memory for it", task);
	timedc_say(line);
	exit(71);
}

void timedc_start(const struct timedc_task *task, const void *arguments)
{
	timedc_ns at = (begun(), now_ns());
	struct state *state = pvPortMalloc(sizeof(*state) + task->arguments_size);
	UBaseType_t priority = priority_of(rank_key(task, 0), 0);

	if (!state)
		out_of_memory(task->name);
	*state = (struct state){ .task = task, .origin = at, .keep_phase = keeps_phase(task) };
	if (task->arguments_size)
		memcpy(state->arguments, arguments, task->arguments_size);
	taskENTER_CRITICAL();
	the.running++;
	taskEXIT_CRITICAL();
	if (xTaskCreate(run, task->name, TIMEDC_STACK_DEPTH, state, priority, NULL) != pdPASS)
		out_of_memory(task->name);
}

static void run_main(void *argument)
{
	static struct state state;

	(void)argument;
	vTaskSetThreadLocalStoragePointer(NULL, TIMEDC_STORAGE, &state);
	the.ended(the.program(the.argc, the.argv));
	vTaskDelete(NULL);
}

int timedc_freertos_start(int (*program)(int, char **), int argc, char **argv,
			  void (*ended)(int status))
{
	the.program = program;
	the.argc = argc;
	the.argv = argv;
	the.ended = ended;
	return xTaskCreate(run_main, "main", TIMEDC_STACK_DEPTH, NULL, tskIDLE_PRIORITY + 1,
			   &the.main_task) == pdPASS ? 0 : -1;
}

int timedc_main_enter(const struct timedc_task *main_task)
{
	struct state *state = self();

	configASSERT(state);
	state->task = main_task;
	state->keep_phase = keeps_phase(main_task);
	vTaskPrioritySet(NULL, priority_of(rank_key(main_task, 0), 0));
	return 1;
}

void timedc_main_leave(int *entered)
{
	unsigned running;

	(void)entered;
	for (;;) {
		taskENTER_CRITICAL();
		running = the.running;
		taskEXIT_CRITICAL();
		if (running == 0)
			return;
		(void)ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
	}
}

/* --- guards ----------------------------------------------------------------------------------- */

static void unguard(struct state *state)
{
	state->point = NULL;
	state->frame = NULL;
	state->deadline_at = TIMEDC_INFTY;
}

void timedc_frame_leave(struct timedc_frame *frame)
{
	timedc_unguard(frame);
}

void timedc_unguard(struct timedc_frame *frame)
{
	struct state *state = self();

	if (state && state->frame == frame)
		unguard(state);
}

int timedc_guard_begins(const struct timedc_frame *frame, const struct timedc_point *point)
{
	struct state *state = begun();

	return state->frame != frame || state->point != point;
}

void timedc_guard(struct timedc_frame *frame, const struct timedc_point *point, timedc_ns deadline)
{
	struct state *state = begun();

	state->frame = frame;
	state->point = point;
	state->deadline = deadline;
	state->deadline_at = later(state->origin, deadline);
	timedc_poll();
}

void timedc_poll(void)
{
	struct state *state = self();

	if (!state || !state->point || state->critical || state->deadline_at == TIMEDC_INFTY ||
	    now_ns() < state->deadline_at)
		return;
	struct timedc_frame *frame = state->frame;
	/* First, so that nothing that is called from here is aborted. */
	unguard(state);
	while (state->on_abort_count > 0) {
		int last = --state->on_abort_count;
		state->on_abort[last].function(state->on_abort[last].argument);
	}
	state->aborted = 2;
	frame->leap(frame->jump);
}

int timedc_on_abort(void (*function)(void *), void *argument)
{
	struct state *state = begun();

	if (state->on_abort_count == ON_ABORT_MAX)
		return -1;
	state->on_abort[state->on_abort_count].function = function;
	state->on_abort[state->on_abort_count++].argument = argument;
	return 0;
}

int timedc_critical_enter(void)
{
	begun()->critical++;
	return 1;
}

void timedc_critical_leave(int *entered)
{
	(void)entered;
	if (--self()->critical == 0)
		timedc_poll();
}

/* --- timing points ---------------------------------------------------------------------------- */

static void end_program(const struct timedc_late *late)
{
	char line[256];

	if (timedc_safe_state)
		timedc_safe_state();
	snprintf(line, sizeof(line),
		 "onbeat: task %s: the hard timing point at %s:%d was missed by %lld ns", late->task,
		 late->file, late->line, (long long)late->overshoot_ns);
	timedc_say(line);
	exit(70);
}

static void is_late(struct state *state, const struct timedc_point *point, timedc_ns overshoot)
{
	struct timedc_late late = {
		.task = state->task ? state->task->name : "main",
		.file = point->file,
		.line = point->line,
		.overshoot_ns = overshoot,
	};

	trace(state, now_ns(), "late", point->name, overshoot);
	(state->on_late ? state->on_late : end_program)(&late);
}

long timedc_point(const struct timedc_point *point, timedc_ns period, timedc_ns deadline)
{
	struct state *state = begun();
	timedc_ns arrival = now_ns();
	timedc_ns release = later(state->origin, period);
	timedc_ns by = later(state->origin, deadline == TIMEDC_SAME ? period : deadline);
	timedc_ns overshoot = arrival > by ? arrival - by : 0;

	/* 2: the abort that leads here; 1: what timedc_aborted tells from now on. */
	state->aborted = state->aborted == 2;
	unguard(state);
	state->on_abort_count = 0;
	if (state->skip) {
		state->skip = 0;
		state->origin = arrival;
		trace(state, arrival, "skip", point->name, 0);
		return 0;
	}
	trace(state, arrival, state->aborted ? "abort" : "arrive", point->name, overshoot);
	if (point->kind == TIMEDC_HARD && (state->aborted || overshoot > 0))
		is_late(state, point, overshoot);
	if (arrival <= release)
		sleep_until(release);
	state->origin = arrival <= release || state->keep_phase ? release : arrival;
	trace(state, now_ns(), "release", point->name, overshoot);
	return (long)(overshoot / unit_ns(point->unit));
}

long timedc_gettime(int unit)
{
	struct state *state = begun();

	state->origin = now_ns();
	if (state->point)
		state->deadline_at = later(state->origin, state->deadline);
	return (long)((state->origin - the.start) / unit_ns(unit));
}

void timedc_skip(void)
{
	begun()->skip = 1;
}

void timedc_on_late(timedc_late_handler *handler)
{
	begun()->on_late = handler;
}

int timedc_aborted(void)
{
	return begun()->aborted == 1;
}

void timedc_keep_phase(int keep)
{
	begun()->keep_phase = keep != 0;
}

/* Code takes the time that it takes. */
void timedc_work(timedc_ns bcet, timedc_ns wcet)
{
	(void)bcet;
	(void)wcet;
}

/* --- scheduling ------------------------------------------------------------------------------- */

void timedc_spolicy(enum timedc_policy policy)
{
	struct state *state = begun();
	int by_deadline = policy == TIMEDC_FIFO_DM || policy == TIMEDC_RR_DM;

	if (state->task)
		vTaskPrioritySet(NULL, priority_of(rank_key(state->task, by_deadline), by_deadline));
}

void timedc_aperiodic(timedc_ns separation)
{
	vTaskPrioritySet(NULL, priority_of(separation > 0 ? separation : TIMEDC_INFTY, 0));
}

void timedc_spriority(int priority)
{
	const int least = tskIDLE_PRIORITY + 1, most = configMAX_PRIORITIES - 1;

	vTaskPrioritySet(NULL, priority < least ? least : priority > most ? most : priority);
}

/* --- channels --------------------------------------------------------------------------------- */

/* A queue of the kernel over the channel's own storage. */
struct fifo_state {
	QueueHandle_t queue;
	StaticQueue_t room;
};
_Static_assert(sizeof(struct fifo_state) <= sizeof(((struct timedc_fifo *)0)->state),
	       "a queue of this kernel is larger than timedc.h leaves room for");

static QueueHandle_t queue_of(struct timedc_fifo *fifo)
{
	struct fifo_state *state = (void *)fifo->state;

	vTaskSuspendAll();
	if (!state->queue)
		state->queue = xQueueCreateStatic(fifo->capacity, fifo->size, fifo->values,
						  &state->room);
	(void)xTaskResumeAll();
	return state->queue;
}

int timedc_fifo_init(struct timedc_fifo *fifo, const void *value)
{
	(void)value;
	(void)xQueueReset(queue_of(fifo));
	return 0;
}

int timedc_fifo_write(struct timedc_fifo *fifo, const void *value)
{
	int is_full = xQueueSend(queue_of(fifo), value, 0) != pdPASS;

	trace(begun(), now_ns(), is_full ? "full" : "write", fifo->name, 0);
	return is_full;
}

int timedc_fifo_read(struct timedc_fifo *fifo, void *value)
{
	struct state *state = begun();
	QueueHandle_t queue = queue_of(fifo);

	for (;;) {
		int is_bound = state->point && !state->critical &&
			       state->deadline_at != TIMEDC_INFTY;
		TickType_t most = is_bound ? ticks_until(state->deadline_at) : portMAX_DELAY;
		if (xQueueReceive(queue, value, most) == pdPASS)
			break;
		timedc_poll();
	}
	trace(state, now_ns(), "read", fifo->name, 0);
	return 0;
}

int timedc_fifo_count(struct timedc_fifo *fifo)
{
	return (int)uxQueueMessagesWaiting(queue_of(fifo));
}

int timedc_latest_init(struct timedc_latest *latest, const void *value)
{
	return timedc_latest_write(latest, value);
}

/* No other task runs meanwhile: so no task waits, and no value is torn. */
int timedc_latest_write(struct timedc_latest *latest, const void *value)
{
	vTaskSuspendAll();
	memcpy(latest->values, value, latest->size);
	(void)xTaskResumeAll();
	trace(begun(), now_ns(), "write", latest->name, 0);
	return 0;
}

int timedc_latest_read(struct timedc_latest *latest, void *value)
{
	vTaskSuspendAll();
	memcpy(value, latest->values, latest->size);
	(void)xTaskResumeAll();
	trace(begun(), now_ns(), "read", latest->name, 0);
	return 0;
}

int timedc_latest_count(struct timedc_latest *latest)
{
	(void)latest;
	return 1;
}
