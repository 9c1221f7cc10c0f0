/*
 * Not FreeRTOS: see FreeRTOS.h beside it.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

typedef struct shim_task *TaskHandle_t;
typedef void (*TaskFunction_t)(void *);

#define tskIDLE_PRIORITY ((UBaseType_t)0)

BaseType_t xTaskCreate(TaskFunction_t function, const char *name, configSTACK_DEPTH_TYPE depth,
		       void *argument, UBaseType_t priority, TaskHandle_t *task);
void vTaskDelete(TaskHandle_t task);
void vTaskStartScheduler(void);

void vTaskDelay(TickType_t ticks);
BaseType_t xTaskDelayUntil(TickType_t *previous, TickType_t increment);
TickType_t xTaskGetTickCount(void);

void vTaskPrioritySet(TaskHandle_t task, UBaseType_t priority);
UBaseType_t uxTaskPriorityGet(TaskHandle_t task);

void vTaskSetThreadLocalStoragePointer(TaskHandle_t task, BaseType_t index, void *value);
void *pvTaskGetThreadLocalStoragePointer(TaskHandle_t task, BaseType_t index);

void vTaskSuspendAll(void);
BaseType_t xTaskResumeAll(void);
#define taskENTER_CRITICAL() vTaskSuspendAll()
#define taskEXIT_CRITICAL() ((void)xTaskResumeAll())

BaseType_t xTaskNotifyGive(TaskHandle_t task);
uint32_t ulTaskNotifyTake(BaseType_t clear, TickType_t ticks);
