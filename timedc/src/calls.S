/*
 * calls.S: calls functions whose parameters nobody knows, so that no abort comes before they
 * return. Arguments may lie on the stack, so nothing may be put between them and the function:
 * where the call returns to is kept by the thread (deferred.c), and it returns here instead.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include <timedc_deferred.h>

#ifdef TIMEDC_CALLS
	.hidden timedc_deferred_enter
	.hidden timedc_deferred_leave
	.hidden timedc_pointers
	.globl timedc_deferred
	.type timedc_deferred, %function
	.p2align 4

#ifdef __x86_64__

/* %r11 is the function. All that arguments may be in is kept, %rax for those with `...`. */
timedc_deferred:
	.cfi_startproc
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	subq $192, %rsp
	movq %rdi, (%rsp)
	movq %rsi, 8(%rsp)
	movq %rdx, 16(%rsp)
	movq %rcx, 24(%rsp)
	movq %r8, 32(%rsp)
	movq %r9, 40(%rsp)
	movq %rax, 48(%rsp)
	movq %r11, 56(%rsp)
	movaps %xmm0, 64(%rsp)
	movaps %xmm1, 80(%rsp)
	movaps %xmm2, 96(%rsp)
	movaps %xmm3, 112(%rsp)
	movaps %xmm4, 128(%rsp)
	movaps %xmm5, 144(%rsp)
	movaps %xmm6, 160(%rsp)
	movaps %xmm7, 176(%rsp)
	movq 8(%rbp), %rdi
	call timedc_deferred_enter
	movl %eax, %r10d
	movq (%rsp), %rdi
	movq 8(%rsp), %rsi
	movq 16(%rsp), %rdx
	movq 24(%rsp), %rcx
	movq 32(%rsp), %r8
	movq 40(%rsp), %r9
	movq 48(%rsp), %rax
	movq 56(%rsp), %r11
	movaps 64(%rsp), %xmm0
	movaps 80(%rsp), %xmm1
	movaps 96(%rsp), %xmm2
	movaps 112(%rsp), %xmm3
	movaps 128(%rsp), %xmm4
	movaps 144(%rsp), %xmm5
	movaps 160(%rsp), %xmm6
	movaps 176(%rsp), %xmm7
	leave
	.cfi_def_cfa %rsp, 8
	testl %r10d, %r10d
	jz 1f
	leaq 2f(%rip), %r10
	movq %r10, (%rsp)
1:	jmp *%r11
	.cfi_endproc

	/* Nobody finds the way back from here: unwinding ends. */
	.cfi_startproc
	.cfi_undefined %rip
	nop
2:	subq $8, %rsp
	pushq %rbp
	movq %rsp, %rbp
	subq $48, %rsp
	andq $-16, %rsp
	movq %rax, (%rsp)
	movq %rdx, 8(%rsp)
	movaps %xmm0, 16(%rsp)
	movaps %xmm1, 32(%rsp)
	call timedc_deferred_leave
	movq %rax, 8(%rbp)
	movq (%rsp), %rax
	movq 8(%rsp), %rdx
	movaps 16(%rsp), %xmm0
	movaps 32(%rsp), %xmm1
	leave
	ret
	.cfi_endproc

#define LOAD_POINTER endbr64; movq timedc_pointers + 8 * number(%rip), %r11; jmp timedc_deferred

#else /* AArch64; x16 is the function. */

timedc_deferred:
	.cfi_startproc
	stp x29, x30, [sp, #-224]!
	.cfi_def_cfa_offset 224
	.cfi_offset x29, -224
	.cfi_offset x30, -216
	mov x29, sp
	stp x0, x1, [sp, #16]
	stp x2, x3, [sp, #32]
	stp x4, x5, [sp, #48]
	stp x6, x7, [sp, #64]
	stp x8, x16, [sp, #80]
	stp q0, q1, [sp, #96]
	stp q2, q3, [sp, #128]
	stp q4, q5, [sp, #160]
	stp q6, q7, [sp, #192]
	mov x0, x30
	bl timedc_deferred_enter
	mov w17, w0
	ldp x0, x1, [sp, #16]
	ldp x2, x3, [sp, #32]
	ldp x4, x5, [sp, #48]
	ldp x6, x7, [sp, #64]
	ldp x8, x16, [sp, #80]
	ldp q0, q1, [sp, #96]
	ldp q2, q3, [sp, #128]
	ldp q4, q5, [sp, #160]
	ldp q6, q7, [sp, #192]
	ldp x29, x30, [sp], #224
	.cfi_def_cfa_offset 0
	.cfi_restore x29
	.cfi_restore x30
	cbz w17, 1f
	adr x30, 2f
1:	br x16
	.cfi_endproc

	.cfi_startproc
	.cfi_undefined x30
	nop
2:	stp x29, x30, [sp, #-96]!
	mov x29, sp
	stp x0, x1, [sp, #16]
	stp q0, q1, [sp, #32]
	stp q2, q3, [sp, #64]
	bl timedc_deferred_leave
	mov x30, x0
	ldp x0, x1, [sp, #16]
	ldp q0, q1, [sp, #32]
	ldp q2, q3, [sp, #64]
	ldr x29, [sp], #96
	ret
	.cfi_endproc

#define LOAD_POINTER \
	hint 34; adrp x16, timedc_pointers + 8 * number; \
	ldr x16, [x16, :lo12:timedc_pointers + 8 * number]; b timedc_deferred

#endif
	.size timedc_deferred, . - timedc_deferred

/* The same for functions that only pointers lead to: entries of 16 octets. */
	.hidden timedc_pointer_entries
	.globl timedc_pointer_entries
	.type timedc_pointer_entries, %function
	.p2align 4
timedc_pointer_entries:
	.set number, 0
	.rept 1024
	.p2align 4
	LOAD_POINTER
	.set number, number + 1
	.endr
	.size timedc_pointer_entries, . - timedc_pointer_entries
#define POINTER_MAX 1024
#else
	.globl timedc_pointer_entries
timedc_pointer_entries:
#define POINTER_MAX 0
#endif

	.section .rodata
	.p2align 2
	.globl timedc_pointer_max
	.type timedc_pointer_max, %object
timedc_pointer_max:
	.long POINTER_MAX
	.size timedc_pointer_max, 4
