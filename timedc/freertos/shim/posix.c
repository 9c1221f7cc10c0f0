/*
 * Not FreeRTOS: its calls as far as Timed C's run time uses them, for tests. Tasks are threads, of
 * which one runs at a time: the one of the highest priority, of equal ones the one that has been
 * ready for longest. The tick is virtual, so every run is the same: it counts when a task says
 * that it works, and when all tasks wait.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "FreeRTOS.h"
#include "queue.h"
#include "shim.h"
#include "task.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shim_task {
	struct shim_task *next; /* of all tasks */
	pthread_t thread;
	pthread_cond_t go;
	TaskFunction_t function;
	void *argument;
	void *storage;
	UBaseType_t priority;
	unsigned long long since; /* since when it is ready: a running number */
	int is_ready, is_timed;
	TickType_t wake;
	const void *waits_for; /* a queue, itself for a notification, or nothing */
	uint32_t notified;
};

struct shim_queue {
	uint8_t *storage;
	UBaseType_t length, size, first, count;
};
_Static_assert(sizeof(struct shim_queue) <= sizeof(StaticQueue_t), "the room is large enough");

unsigned shim_first_tick;

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
static struct shim_task *all, *current;
static TickType_t tick;
static unsigned long long number;
static int is_running, suspended;

void *pvPortMalloc(size_t size)
{
	return malloc(size);
}

void vPortFree(void *memory)
{
	free(memory);
}

/* --- scheduling ------------------------------------------------------------------------------- */

static void make_ready(struct shim_task *task)
{
	task->is_ready = 1;
	task->is_timed = 0;
	task->waits_for = NULL;
	task->since = number++;
}

static void count_tick(void)
{
	tick++;
	for (struct shim_task *task = all; task; task = task->next)
		if (!task->is_ready && task->is_timed && task->wake == tick)
			make_ready(task);
}

/* Whom the processor belongs to; ticks pass until there is somebody. */
static struct shim_task *choose(void)
{
	struct shim_task *best = NULL;

	for (;;) {
		int is_any_timed = 0;
		for (struct shim_task *task = all; task; task = task->next) {
			is_any_timed |= task->is_timed;
			if (task->is_ready && (!best || task->priority > best->priority ||
					       (task->priority == best->priority &&
						task->since < best->since)))
				best = task;
		}
		if (best)
			return best;
		if (!is_any_timed) {
			fputs("shim: all tasks wait for ever\n", stderr);
			exit(72);
		}
		count_tick();
	}
}

/* With `one` held: gives the processor to whom it belongs, and comes back with it. */
static void reschedule(struct shim_task *self)
{
	if (suspended)
		return;
	current = choose();
	if (current != self)
		pthread_cond_signal(&current->go);
	while (self && current != self)
		pthread_cond_wait(&self->go, &one);
}

/* With `one` held: waits to be woken, so many ticks at most. */
static void wait_for(const void *what, TickType_t ticks)
{
	struct shim_task *self = current;

	configASSERT(!suspended);
	if (ticks == 0)
		return;
	self->is_ready = 0;
	self->waits_for = what;
	self->is_timed = ticks != portMAX_DELAY;
	self->wake = tick + ticks;
	reschedule(self);
}

static void wake_one(const void *what)
{
	struct shim_task *best = NULL;

	for (struct shim_task *task = all; task; task = task->next)
		if (!task->is_ready && task->waits_for == what &&
		    (!best || task->priority > best->priority))
			best = task;
	if (best)
		make_ready(best);
}

static void *begin(void *argument)
{
	struct shim_task *self = argument;

	pthread_mutex_lock(&one);
	while (current != self)
		pthread_cond_wait(&self->go, &one);
	pthread_mutex_unlock(&one);
	self->function(self->argument);
	fputs("shim: a task returned\n", stderr);
	exit(72);
}

BaseType_t xTaskCreate(TaskFunction_t function, const char *name, configSTACK_DEPTH_TYPE depth,
		       void *argument, UBaseType_t priority, TaskHandle_t *handle)
{
	struct shim_task *task = calloc(1, sizeof(*task));

	(void)name;
	configASSERT(task && depth >= configMINIMAL_STACK_SIZE);
	configASSERT(priority < configMAX_PRIORITIES);
	pthread_cond_init(&task->go, NULL);
	task->function = function;
	task->argument = argument;
	task->priority = priority;
	if (handle)
		*handle = task;
	pthread_mutex_lock(&one);
	task->next = all;
	all = task;
	make_ready(task);
	configASSERT(pthread_create(&task->thread, NULL, begin, task) == 0);
	if (is_running)
		reschedule(current);
	pthread_mutex_unlock(&one);
	return pdPASS;
}

void vTaskDelete(TaskHandle_t task)
{
	struct shim_task **link = &all, *self = current;

	configASSERT(!task);
	pthread_mutex_lock(&one);
	while (*link != self)
		link = &(*link)->next;
	*link = self->next;
	reschedule(NULL);
	pthread_mutex_unlock(&one);
	pthread_detach(pthread_self());
	pthread_cond_destroy(&self->go);
	free(self);
	pthread_exit(NULL);
}

void vTaskStartScheduler(void)
{
	pthread_mutex_lock(&one);
	tick = shim_first_tick;
	is_running = 1;
	reschedule(NULL);
	pthread_mutex_unlock(&one);
	pthread_exit(NULL);
}

void vTaskPrioritySet(TaskHandle_t task, UBaseType_t priority)
{
	configASSERT(!task && priority < configMAX_PRIORITIES);
	pthread_mutex_lock(&one);
	current->priority = priority;
	reschedule(current);
	pthread_mutex_unlock(&one);
}

UBaseType_t uxTaskPriorityGet(TaskHandle_t task)
{
	return (task ? task : current)->priority;
}

void vTaskSetThreadLocalStoragePointer(TaskHandle_t task, BaseType_t index, void *value)
{
	configASSERT(!task && index == 0);
	current->storage = value;
}

void *pvTaskGetThreadLocalStoragePointer(TaskHandle_t task, BaseType_t index)
{
	configASSERT(!task && index == 0);
	return current ? current->storage : NULL;
}

void vTaskSuspendAll(void)
{
	suspended++;
}

BaseType_t xTaskResumeAll(void)
{
	configASSERT(suspended > 0);
	if (--suspended == 0) {
		pthread_mutex_lock(&one);
		reschedule(current);
		pthread_mutex_unlock(&one);
	}
	return pdFALSE;
}

/* --- time ------------------------------------------------------------------------------------- */

void shim_work(unsigned ticks)
{
	pthread_mutex_lock(&one);
	while (ticks-- > 0) {
		count_tick();
		reschedule(current);
	}
	pthread_mutex_unlock(&one);
}

TickType_t xTaskGetTickCount(void)
{
	return tick;
}

void vTaskDelay(TickType_t ticks)
{
	pthread_mutex_lock(&one);
	wait_for(NULL, ticks);
	pthread_mutex_unlock(&one);
}

BaseType_t xTaskDelayUntil(TickType_t *previous, TickType_t increment)
{
	TickType_t since = tick - *previous;

	*previous += increment;
	if (since >= increment)
		return pdFALSE;
	vTaskDelay(increment - since);
	return pdTRUE;
}

/* --- notifications and queues ----------------------------------------------------------------- */

BaseType_t xTaskNotifyGive(TaskHandle_t task)
{
	pthread_mutex_lock(&one);
	task->notified++;
	wake_one(task);
	reschedule(current);
	pthread_mutex_unlock(&one);
	return pdPASS;
}

uint32_t ulTaskNotifyTake(BaseType_t clear, TickType_t ticks)
{
	uint32_t count;

	pthread_mutex_lock(&one);
	if (current->notified == 0)
		wait_for(current, ticks);
	count = current->notified;
	if (count > 0)
		current->notified = clear ? 0 : count - 1;
	pthread_mutex_unlock(&one);
	return count;
}

QueueHandle_t xQueueCreateStatic(UBaseType_t length, UBaseType_t size, uint8_t *storage,
				 StaticQueue_t *room)
{
	struct shim_queue *queue = (void *)room;

	configASSERT(length > 0 && size > 0 && storage);
	*queue = (struct shim_queue){ .storage = storage, .length = length, .size = size };
	return queue;
}

BaseType_t xQueueReset(QueueHandle_t queue)
{
	queue->first = queue->count = 0;
	return pdPASS;
}

BaseType_t xQueueSend(QueueHandle_t queue, const void *item, TickType_t ticks)
{
	configASSERT(ticks == 0);
	if (queue->count == queue->length)
		return pdFAIL;
	UBaseType_t last = (queue->first + queue->count++) % queue->length;
	memcpy(queue->storage + last * queue->size, item, queue->size);
	pthread_mutex_lock(&one);
	wake_one(queue);
	reschedule(current);
	pthread_mutex_unlock(&one);
	return pdPASS;
}

BaseType_t xQueueReceive(QueueHandle_t queue, void *item, TickType_t ticks)
{
	TickType_t begun = tick;

	pthread_mutex_lock(&one);
	while (queue->count == 0) {
		TickType_t over = tick - begun;
		TickType_t left = ticks == portMAX_DELAY ? ticks : over < ticks ? ticks - over : 0;
		if (left == 0)
			break;
		wait_for(queue, left);
	}
	int is_there = queue->count > 0;
	if (is_there) {
		memcpy(item, queue->storage + queue->first * queue->size, queue->size);
		queue->first = (queue->first + 1) % queue->length;
		queue->count--;
	}
	pthread_mutex_unlock(&one);
	return is_there ? pdPASS : pdFAIL;
}

UBaseType_t uxQueueMessagesWaiting(QueueHandle_t queue)
{
	return queue->count;
}
