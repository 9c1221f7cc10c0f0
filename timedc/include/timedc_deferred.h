/*
 * timedc_deferred.h: for the assembler. TIMEDC_DEFERRED(name) receives, by the linker's --wrap, the
 * calls of a function with unknown parameters: the function is called with what it was called with,
 * and no abort comes before it returns. `onbeat cc` writes one for each function of a library that
 * is neither known to be abortable (abortable.txt) nor wrapped by hand (wrapped.txt).
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

/* The function's address goes into a scratch register that procedure calls leave to linkers. */
#define TIMEDC_BEGIN(name) \
	.globl __wrap_##name; .type __wrap_##name, %function; .p2align 4; __wrap_##name:
#if defined(__x86_64__) && defined(__LP64__)
#define TIMEDC_CALLS 1
#define TIMEDC_DEFERRED(name) \
	TIMEDC_BEGIN(name) endbr64; movq __real_##name@GOTPCREL(%rip), %r11; jmp timedc_deferred
#elif defined(__aarch64__) && defined(__LP64__)
#define TIMEDC_CALLS 1
#define TIMEDC_DEFERRED(name) \
	TIMEDC_BEGIN(name) hint 34; adrp x16, :got:__real_##name; \
	ldr x16, [x16, :got_lo12:__real_##name]; b timedc_deferred
#else
#define TIMEDC_DEFERRED(name) \
	.error "no abort can be made to wait for " #name " on this processor"
#endif

	.hidden timedc_deferred
	.section .note.GNU-stack, "", %progbits
	.text
