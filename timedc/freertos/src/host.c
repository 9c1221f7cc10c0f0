/*
 * What begins FreeRTOS as a process (the kernel's POSIX simulator port): linked with --wrap=main so
 * that the system calls this, and this the program's own main.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include <timedc_freertos.h>

#include <FreeRTOS.h>
#include <task.h>

#include <stdlib.h>

/* With the parameters that it happens to have: main may have none. */
int __real_main(int argc, char **argv);
int __wrap_main(int argc, char **argv);

/* The kernel asks for it where there is static allocation. */
void vApplicationGetIdleTaskMemory(StaticTask_t **task, StackType_t **stack,
				   configSTACK_DEPTH_TYPE *depth);
void vApplicationGetIdleTaskMemory(StaticTask_t **task, StackType_t **stack,
				   configSTACK_DEPTH_TYPE *depth)
{
	static StaticTask_t idle;
	static StackType_t idle_stack[configMINIMAL_STACK_SIZE];

	*task = &idle;
	*stack = idle_stack;
	*depth = configMINIMAL_STACK_SIZE;
}

/* The process ends with its program; the simulator's threads need no farewell. */
static void ended(int status)
{
	exit(status);
}

int __wrap_main(int argc, char **argv)
{
	if (timedc_freertos_start(__real_main, argc, argv, ended) != 0) {
		timedc_say("onbeat: FreeRTOS has no memory for the program");
		return 71;
	}
	vTaskStartScheduler();
	return 71; /* no memory for the idle task */
}
