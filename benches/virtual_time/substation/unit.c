/* A merging unit: writes a sample 4,000 times a second. Usage: unit CHANNEL */
#include <onbeat.h>
#include <stdlib.h>

#define SAMPLE_NS 250000

int main(int argc, char **argv)
{
	unsigned char sample[72] = { 0 };
	onbeat *run;
	onbeat_talker *out;

	if (argc != 2 || onbeat_open(&run) || onbeat_talker_open(run, argv[1], sizeof(sample), &out) ||
	    onbeat_start(run))
		return EXIT_FAILURE;
	for (int64_t at = 0;; at += SAMPLE_NS) {
		if (onbeat_sleep_until(run, at, NULL) || onbeat_write(out, sample, NULL))
			break;
	}
	onbeat_talker_close(out);
	onbeat_close(run);
	return EXIT_SUCCESS;
}
