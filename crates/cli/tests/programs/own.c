/* One host talks on `c` and hears itself. `talk` writes each period; `hear` reads; `both` writes
 * and reads each message itself. What was read is in NAME.log: value, capture, receipt.
 * Usage: own talk|hear|both NAME */
#include "common.h"

static onbeat *run;
static onbeat_talker *out;
static onbeat_listener *in;
static FILE *book;

static onbeat_status hear(uint64_t *value)
{
	onbeat_message message;
	onbeat_status status = onbeat_read(in, value, &message);

	if (status == ONBEAT_OK)
		fprintf(book, "%llu %lld %lld\n", (unsigned long long)*value,
			(long long)message.capture_ns,
			(long long)(message.capture_ns + message.latency_ns));
	return status;
}

int main(int count, char **arguments)
{
	int talks, hears;
	uint64_t heard;
	char name[64];

	EXPECT(count == 3);
	talks = strcmp(arguments[1], "hear") != 0;
	hears = strcmp(arguments[1], "talk") != 0;
	snprintf(name, sizeof(name), "%s.log", arguments[2]);
	book = fopen(name, "w");
	EXPECT(book != NULL);
	must(onbeat_open(&run));
	if (talks)
		must(onbeat_talker_open(run, "c", 8, &out));
	if (hears)
		must(onbeat_listener_open(run, "c", 8, &in));
	if (talks && hears)
		EXPECT(onbeat_rendezvous(out, &heard, in, &heard, NULL) == ONBEAT_E_ARGUMENT);
	must(onbeat_start(run));
	for (uint64_t value = 0;; value++) {
		if (talks && onbeat_write(out, &value, NULL) != ONBEAT_OK)
			break;
		if (hears && hear(&heard) != ONBEAT_OK)
			break;
		EXPECT(!(talks && hears) || heard == value);
		if (talks && onbeat_sleep_until(run, (int64_t)(value + 1) * PERIOD_NS, NULL))
			break;
	}
	fclose(book);
	if (hears)
		onbeat_listener_close(in);
	if (talks)
		onbeat_talker_close(out);
	onbeat_close(run);
	return 0;
}
