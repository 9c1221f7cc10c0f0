/* Says what every status means, and asks for all other numbers, from several threads at once.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "../common.h"
#include <limits.h>
#include <pthread.h>

enum { FIRST = -64, LAST = 64, THREADS = 4, ROUNDS = 1000 };

static const char *before[LAST - FIRST + 1];

/* The texts are the same each time, for every thread. */
static void *asks(void *argument)
{
	for (int round = 0; round < ROUNDS; round++)
		for (int status = FIRST; status <= LAST; status++)
			EXPECT(onbeat_strerror(status) == before[status - FIRST]);
	return argument;
}

int main(void)
{
	pthread_t threads[THREADS];
	const char *none = onbeat_strerror(INT_MIN);

	EXPECT(onbeat_strerror(INT_MAX) == none && onbeat_strerror(1 << 16) == none);
	for (int status = FIRST; status <= LAST; status++) {
		before[status - FIRST] = onbeat_strerror(status);
		EXPECT(before[status - FIRST] && before[status - FIRST][0]);
	}
	for (int at = 0; at < THREADS; at++)
		EXPECT(pthread_create(&threads[at], NULL, asks, NULL) == 0);
	for (int at = 0; at < THREADS; at++)
		EXPECT(pthread_join(threads[at], NULL) == 0);
	for (int status = FIRST; status <= LAST; status++)
		if (before[status - FIRST] != none)
			printf("%d %s\n", status, before[status - FIRST]);
	/* It is no failure: what the last one was is still known. */
	EXPECT(onbeat_open(NULL) == ONBEAT_E_ARGUMENT);
	onbeat_strerror(ONBEAT_E_NETWORK);
	EXPECT(strcmp(onbeat_last_error(), "`out` is NULL") == 0);
	return 0;
}
