/*
 * wrap.h: what stands between a program and the functions that may not be aborted halfway. The
 * linker's --wrap sends calls of NAME here, and __real_NAME is the function itself. In threads that
 * are no tasks, and before main, nothing is added.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include "internal.h"

#define WRAP_DECLARE(type, name, parameters) \
	extern type __real_##name parameters; \
	type __wrap_##name parameters

/* Returns something. */
#define WRAP(type, name, parameters, arguments) \
	WRAP_DECLARE(type, name, parameters); \
	type __wrap_##name parameters \
	{ \
		struct timedc_thread *thread = timedc_defer(); \
		type result = __real_##name arguments; \
		timedc_resume(thread); \
		return result; \
	}

#define WRAP_VOID(name, parameters, arguments) \
	WRAP_DECLARE(void, name, parameters); \
	void __wrap_##name parameters \
	{ \
		struct timedc_thread *thread = timedc_defer(); \
		__real_##name arguments; \
		timedc_resume(thread); \
	}

/* Returns something that is held until it is given back: memory, or a stream. */
#define WRAP_GETS(type, name, parameters, arguments) \
	WRAP_DECLARE(type, name, parameters); \
	type __wrap_##name parameters \
	{ \
		struct timedc_thread *thread = timedc_defer(); \
		type result = __real_##name arguments; \
		if (result) \
			timedc_hold(thread, result); \
		timedc_resume(thread); \
		return result; \
	}

/* Holds `what` when it succeeds, that is, returns 0. */
#define WRAP_TAKES(type, name, parameters, arguments, what) \
	WRAP_DECLARE(type, name, parameters); \
	type __wrap_##name parameters \
	{ \
		struct timedc_thread *thread = timedc_defer(); \
		type result = __real_##name arguments; \
		if (result == 0) \
			timedc_hold(thread, what); \
		timedc_resume(thread); \
		return result; \
	}

/* Gives `what` back. */
#define WRAP_GIVES(type, name, parameters, arguments, what) \
	WRAP_DECLARE(type, name, parameters); \
	type __wrap_##name parameters \
	{ \
		struct timedc_thread *thread = timedc_defer(); \
		timedc_unhold(thread, what); \
		type result = __real_##name arguments; \
		timedc_resume(thread); \
		return result; \
	}

#define WRAP_GIVES_VOID(name, parameters, arguments, what) \
	WRAP_DECLARE(void, name, parameters); \
	void __wrap_##name parameters \
	{ \
		struct timedc_thread *thread = timedc_defer(); \
		timedc_unhold(thread, what); \
		__real_##name arguments; \
		timedc_resume(thread); \
	}

/* With `...` behind `last`: calls `with_list`, which takes a va_list. */
#define WRAP_LIST(type, name, parameters, with_list, arguments, last) \
	WRAP_DECLARE(type, name, parameters); \
	type __wrap_##name parameters \
	{ \
		struct timedc_thread *thread = timedc_defer(); \
		va_list list; \
		va_start(list, last); \
		type result = with_list arguments; \
		va_end(list); \
		timedc_resume(thread); \
		return result; \
	}

/* Does not return. */
#define WRAP_ENDS(name, parameters, arguments) \
	extern void __real_##name parameters __attribute__((noreturn)); \
	void __wrap_##name parameters __attribute__((noreturn)); \
	void __wrap_##name parameters \
	{ \
		timedc_defer(); \
		__real_##name arguments; \
	}
