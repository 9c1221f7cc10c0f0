/*
 * signals.c: the program's own signals. While one of its handlers runs, the abort's signal is
 * blocked: control would leave the handler for the point, and the kernel would never know that the
 * handler is over. Nor can the program block the abort's signal, or take it.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "signals.h"
#include "wrap.h"

#include <errno.h>

typedef void handler(int number);

WRAP_DECLARE(int, sigaction, (int number, const struct sigaction *new, struct sigaction *old));
WRAP_DECLARE(int, pthread_sigmask, (int how, const sigset_t *set, sigset_t *old));
WRAP_DECLARE(int, sigprocmask, (int how, const sigset_t *set, sigset_t *old));
WRAP_DECLARE(handler *, signal, (int number, handler *function));
WRAP_DECLARE(handler *, __sysv_signal, (int number, handler *function));

int __wrap_sigaction(int number, const struct sigaction *new, struct sigaction *old)
{
	struct sigaction action;
	if (number == TIMEDC_ABORT_SIGNAL) {
		errno = EINVAL;
		return -1;
	}
	if (new) {
		action = *new;
		sigaddset(&action.sa_mask, TIMEDC_ABORT_SIGNAL);
	}
	return __real_sigaction(number, new ? &action : NULL, old);
}

static handler *set_handler(int number, handler *function,
			    handler *(*real)(int number, handler *function))
{
	struct sigaction action;
	if (number == TIMEDC_ABORT_SIGNAL) {
		errno = EINVAL;
		return SIG_ERR;
	}
	handler *old = real(number, function);
	if (old != SIG_ERR && __real_sigaction(number, NULL, &action) == 0)
		__wrap_sigaction(number, &action, NULL);
	return old;
}

handler *__wrap_signal(int number, handler *function)
{
	return set_handler(number, function, __real_signal);
}

handler *__wrap___sysv_signal(int number, handler *function)
{
	return set_handler(number, function, __real___sysv_signal);
}

static int set_mask(int how, const sigset_t *set, sigset_t *old,
		    int (*real)(int how, const sigset_t *set, sigset_t *old))
{
	sigset_t others;
	if (set) {
		others = *set;
		if (how != SIG_UNBLOCK)
			sigdelset(&others, TIMEDC_ABORT_SIGNAL);
	}
	return real(how, set ? &others : NULL, old);
}

int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	return set_mask(how, set, old, __real_pthread_sigmask);
}

int __wrap_sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	return set_mask(how, set, old, __real_sigprocmask);
}

bool timedc_signal_take(void (*on_signal)(int, siginfo_t *, void *))
{
	struct sigaction action = {
		.sa_sigaction = on_signal,
		/* Not blocked in its own handler, which does not return. */
		.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART,
	};
	sigemptyset(&action.sa_mask);
	return __real_sigaction(TIMEDC_ABORT_SIGNAL, &action, NULL) == 0;
}

void timedc_signal_unblock(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, TIMEDC_ABORT_SIGNAL);
	__real_pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
