/* `counts talk` writes `c`, `counts listen` reads it. In the end each says how often.
 * `counts talk 9` leaves after 9 messages, with its channel open. */
#include "common.h"

int main(int count, char **arguments)
{
	onbeat *run;
	onbeat_talker *out;
	onbeat_listener *in;
	uint64_t value, done = 0;
	int talks = count > 1 && strcmp(arguments[1], "talk") == 0;

	must(onbeat_open(&run));
	must(talks ? onbeat_talker_open(run, "c", sizeof(value), &out) :
		     onbeat_listener_open(run, "c", sizeof(value), &in));
	must(onbeat_start(run));
	if (talks)
		while ((count < 3 || done < strtoull(arguments[2], NULL, 10)) &&
		       onbeat_write(out, &done, NULL) == ONBEAT_OK &&
		       onbeat_sleep_until(run, (int64_t)++done * 2000000, NULL) == ONBEAT_OK)
			;
	else
		for (; onbeat_read(in, &value, NULL) == ONBEAT_OK; done++)
			EXPECT(value >= done);
	printf("counts: %s %llu\n", talks ? "wrote" : "read", (unsigned long long)done);
	if (count < 3)
		onbeat_close(run);
	return 0;
}
