/*
 * Not FreeRTOS: see FreeRTOS.h beside it.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

typedef struct shim_queue *QueueHandle_t;
/* As large as a 64-bit kernel's. */
typedef struct { void *opaque[21]; } StaticQueue_t;

QueueHandle_t xQueueCreateStatic(UBaseType_t length, UBaseType_t size, uint8_t *storage,
				 StaticQueue_t *room);
BaseType_t xQueueReset(QueueHandle_t queue);
BaseType_t xQueueSend(QueueHandle_t queue, const void *item, TickType_t ticks);
BaseType_t xQueueReceive(QueueHandle_t queue, void *item, TickType_t ticks);
UBaseType_t uxQueueMessagesWaiting(QueueHandle_t queue);
