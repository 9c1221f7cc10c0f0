/*
 * Not FreeRTOS: the types and macros of its public interface that Timed C's run time uses, written
 * from the interface's documentation, for tests where no kernel is at hand. task.h, queue.h and
 * posix.c go with it.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <FreeRTOSConfig.h>

typedef unsigned long StackType_t;
typedef long BaseType_t;
typedef unsigned long UBaseType_t;
typedef uint32_t TickType_t;

#define portMAX_DELAY ((TickType_t)0xffffffff)
#define pdFALSE ((BaseType_t)0)
#define pdTRUE ((BaseType_t)1)
#define pdPASS pdTRUE
#define pdFAIL pdFALSE

typedef struct { void *opaque[40]; } StaticTask_t;

void *pvPortMalloc(size_t size);
void vPortFree(void *memory);
