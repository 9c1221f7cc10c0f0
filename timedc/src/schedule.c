/*
 * schedule.c: policies and priorities. What the system refuses is said once. In virtual time the
 * coordinator shares the processors, and gets told with each piece of work how urgent it is.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "internal.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of the task that comes first, when the process has no priority of its own. */
#define TOP_PRIORITY 80
/* What the kernel takes at least as a runtime. */
#define RUNTIME_MIN_NS 1024
#define RESET_ON_FORK 1
#define PRIORITY_MAX 99

/* The system call's argument, as of its first version. */
struct attributes {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int top; /* the priority of the task that comes first */

static void refused(const struct timedc_thread *thread, const char *what, const char *why)
{
	static bool told;
	if (!told)
		fprintf(stderr, "timedc: task %s: %s refused: %s; the program goes on without\n",
			thread->task->name, what, why);
	told = true;
}

/* What ranks a task: the thread that runs it may have stated its separation. */
static timedc_ns key_of(const struct timedc_task *task, bool by_deadline)
{
	for (unsigned i = 0; i < timedc_thread_count(); i++) {
		const struct timedc_thread *thread = timedc_thread_at(i);
		if (thread->task == task && thread->separation > 0)
			return thread->separation;
	}
	timedc_ns key = by_deadline && task->deadline_ns > 0 ? task->deadline_ns : task->period_ns;
	return key > 0 ? key : TIMEDC_INFTY;
}

/* Whether a task before this one in the list has the same key. */
static bool is_repeated(const struct timedc_unit *unit, int index, timedc_ns key, bool by_deadline)
{
	for (const struct timedc_unit *other = timedc_units(); other; other = other->next)
		for (int i = 0; i < other->task_count; i++) {
			if (other == unit && i == index)
				return false;
			if (key_of(other->tasks[i], by_deadline) == key)
				return true;
		}
	return false;
}

/* How many different keys of the program's tasks come before this one. */
static int rank_of(timedc_ns key, bool by_deadline)
{
	int rank = 0;
	for (const struct timedc_unit *unit = timedc_units(); unit; unit = unit->next)
		for (int i = 0; i < unit->task_count; i++) {
			timedc_ns other = key_of(unit->tasks[i], by_deadline);
			rank += other < key && !is_repeated(unit, i, other, by_deadline);
		}
	return rank;
}

static int top_priority(void)
{
	struct sched_param parameters;
	if (timedc_backend_is_virtual()) {
		const char *own = secure_getenv("ONBEAT_PRIORITY");
		return own && *own && timedc_thread_at(0)->policy < 0 ? atoi(own) : TOP_PRIORITY;
	}
	int policy = sched_getscheduler(getpid());
	if ((policy == SCHED_FIFO || policy == SCHED_RR) &&
	    sched_getparam(getpid(), &parameters) == 0 && timedc_thread_at(0)->policy < 0)
		return parameters.sched_priority;
	return TOP_PRIORITY;
}

/* The period under SCHED_DEADLINE, 0 if there is none, and the deadline counted from a release. */
static timedc_ns period_of(const struct timedc_thread *thread, timedc_ns *deadline)
{
	const struct timedc_task *task = thread->task;
	timedc_ns period = thread->separation > 0 ? thread->separation : task->period_ns;
	*deadline = task->deadline_ns > 0 && task->deadline_ns < period ? task->deadline_ns : period;
	return period;
}

static void apply_deadline(const struct timedc_thread *thread)
{
	const struct timedc_task *task = thread->task;
	timedc_ns deadline, period = period_of(thread, &deadline);
	timedc_ns runtime = task->wcet_ns > 0 ? task->wcet_ns : deadline / 2;
	struct attributes attributes = {
		.size = sizeof(attributes),
		.policy = SCHED_DEADLINE,
		.flags = RESET_ON_FORK,
		.runtime_ns = (uint64_t)(runtime > RUNTIME_MIN_NS ? runtime : RUNTIME_MIN_NS),
		.deadline_ns = (uint64_t)deadline,
		.period_ns = (uint64_t)period,
	};
	if (period <= 0)
		refused(thread, "SCHED_DEADLINE", "none of its periods is constant");
	else if (syscall(SYS_sched_setattr, thread->id, &attributes, 0) != 0)
		refused(thread, "SCHED_DEADLINE", strerror(errno));
}

static int priority_of(const struct timedc_thread *thread)
{
	bool by_deadline = thread->policy == TIMEDC_FIFO_DM || thread->policy == TIMEDC_RR_DM;
	if (thread->priority > 0)
		return thread->priority;
	int priority = top - rank_of(key_of(thread->task, by_deadline), by_deadline);
	return priority > 1 ? priority : 1;
}

int timedc_proposed(const struct timedc_task *task)
{
	const char *all = secure_getenv("ONBEAT_PRIORITIES");
	size_t length = strlen(task->name);
	for (; all && *all; all = strchr(all, ',') ? strchr(all, ',') + 1 : NULL)
		if (strncmp(all, task->name, length) == 0 && all[length] == '=')
			return atoi(all + length + 1);
	return 0;
}

int timedc_urgency(const struct timedc_thread *thread, timedc_ns *deadline)
{
	*deadline = TIMEDC_INFTY;
	if (thread->priority == 0 && thread->policy == TIMEDC_EDF) {
		timedc_ns relative;
		bool guarded = thread->frame && thread->expires != TIMEDC_INFTY;
		if (period_of(thread, &relative) > 0)
			*deadline = guarded ? thread->expires : timedc_add(thread->origin, relative);
		return 0;
	}
	if (thread->policy < 0 && thread->priority == 0)
		return thread->proposed;
	/* What the system would refuse changes nothing. */
	int priority = priority_of(thread);
	return priority <= PRIORITY_MAX ? priority : 0;
}

static void apply(const struct timedc_thread *thread)
{
	bool is_fair = thread->policy == TIMEDC_RR_RM || thread->policy == TIMEDC_RR_DM;
	if (thread->priority == 0 && thread->policy == TIMEDC_EDF) {
		apply_deadline(thread);
		return;
	}
	struct sched_param parameters = {.sched_priority = priority_of(thread)};
	if (sched_setscheduler(thread->id, is_fair ? SCHED_RR : SCHED_FIFO, &parameters) != 0)
		refused(thread, is_fair ? "SCHED_RR" : "SCHED_FIFO", strerror(errno));
}

/* With the lock: a task whose `id` is there and that is not over has not ended. */
static void apply_all(void)
{
	if (!timedc_backend_has_time())
		return;
	if (top == 0)
		top = top_priority();
	for (unsigned i = 0; i < timedc_thread_count() && !timedc_backend_is_virtual(); i++) {
		const struct timedc_thread *thread = timedc_thread_at(i);
		if (thread->id != 0 && !thread->over && (thread->policy >= 0 || thread->priority > 0))
			apply(thread);
	}
}

void timedc_schedule(void)
{
	pthread_mutex_lock(&lock);
	apply_all();
	pthread_mutex_unlock(&lock);
}

void timedc_tasks_lock(void)
{
	pthread_mutex_lock(&lock);
}

void timedc_tasks_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static void ask(int policy, int priority, timedc_ns separation)
{
	struct timedc_thread *thread = timedc_thread();
	thread->deferred++;
	pthread_mutex_lock(&lock);
	thread->policy = policy >= 0 ? policy : thread->policy;
	thread->priority = priority > 0 ? priority : thread->priority;
	thread->separation = separation > 0 ? separation : thread->separation;
	apply_all();
	pthread_mutex_unlock(&lock);
	timedc_resume(thread);
}

void timedc_spolicy(enum timedc_policy policy)
{
	ask((int)policy, 0, 0);
}

void timedc_spriority(int priority)
{
	ask(-1, priority, 0);
}

void timedc_aperiodic(timedc_ns separation)
{
	ask(-1, 0, separation);
}
