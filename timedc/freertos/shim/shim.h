/*
 * Not FreeRTOS: what tests ask of the shim beyond the kernel's interface.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

/* The calling task computes for so many ticks. Time passes here, and when all tasks wait, only. */
void shim_work(unsigned ticks);
/* The tick count with which the scheduler starts. */
extern unsigned shim_first_tick;
