/*
 * The configuration under which onbeat cc --target freertos builds the kernel as a process. A
 * firmware has its own; what Timed C needs of it stands first.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include <assert.h>
#include <stdint.h>

/* Timed C needs these. */
#define configUSE_PREEMPTION 1
#define configSUPPORT_STATIC_ALLOCATION 1
#define configSUPPORT_DYNAMIC_ALLOCATION 1
#define configNUM_THREAD_LOCAL_STORAGE_POINTERS 1
#define configUSE_TASK_NOTIFICATIONS 1
#define INCLUDE_vTaskPrioritySet 1
#define INCLUDE_vTaskDelete 1
#define INCLUDE_vTaskDelay 1
#define INCLUDE_xTaskDelayUntil 1

/* One tick is the resolution of time. */
#define configTICK_RATE_HZ 1000
#define configUSE_16_BIT_TICKS 0
#define configMAX_PRIORITIES 32
#define configUSE_PORT_OPTIMISED_TASK_SELECTION 0
#define configUSE_TIME_SLICING 1
#define configIDLE_SHOULD_YIELD 1
#define configMAX_TASK_NAME_LEN 32

/* In words. A task of the simulator is a thread and needs a thread's stack. */
#define configSTACK_DEPTH_TYPE uint32_t
#define configMINIMAL_STACK_SIZE 4096

#define configUSE_IDLE_HOOK 0
#define configUSE_TICK_HOOK 0
#define configUSE_TIMERS 0
#define configUSE_CO_ROUTINES 0
#define configUSE_MUTEXES 1
#define configUSE_COUNTING_SEMAPHORES 1
#define configQUEUE_REGISTRY_SIZE 0
#define configCHECK_FOR_STACK_OVERFLOW 0
#define configUSE_MALLOC_FAILED_HOOK 0
#define INCLUDE_vTaskSuspend 1
#define INCLUDE_xTaskGetSchedulerState 1
#define INCLUDE_xTaskGetCurrentTaskHandle 1
#define INCLUDE_uxTaskPriorityGet 1

#define configASSERT(holds) assert(holds)
