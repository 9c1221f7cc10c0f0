/*
 * stress.c: aborts a call of calls.c again and again while another task makes the same. Both end,
 * whatever the abort met: `stress NAME ABORTS` says so.
 */
#include <cilktc.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEVER 1000000000000

void call_prepare(void);
int call_find(const char *name);
void call_make(int which, int me);

static int which, aborts, aborted, report;
static int over;

task victim()
{
	for (int round = 0; round < aborts; round++) {
		long delay = 20 + round % 64;

		for (;;)
			call_make(which, 0);
		fdelay(delay, us);
		delay = NEVER; /* the counting must not be late */
		aborted += timedc_aborted();
	}
	sdelay(0, ms);
	__atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
}

task other()
{
	do {
		call_make(which, 1);
		sdelay(50, us);
	} while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST));
	call_make(which, 1);
	dprintf(report, "%d aborted, both ended\n", aborted);
}

int main(int count, char **words)
{
	if (count != 3)
		return 2;
	report = dup(1);
	for (int file = 0; file < 3; file++)
		dup2(open("/dev/null", O_RDWR), file);
	aborts = atoi(words[2]);
	call_prepare();
	which = call_find(words[1]);
	victim();
	other();
	return 0;
}
