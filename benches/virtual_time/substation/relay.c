/* A relay: reads a sample of each channel, one after the other. Usage: relay CHANNEL... */
#include <onbeat.h>
#include <stdlib.h>

#define MOST 16

int main(int argc, char **argv)
{
	unsigned char sample[72];
	onbeat_listener *in[MOST];
	int channels = argc - 1;
	onbeat *run;

	if (channels < 1 || channels > MOST || onbeat_open(&run))
		return EXIT_FAILURE;
	for (int i = 0; i < channels; i++)
		if (onbeat_listener_open(run, argv[1 + i], sizeof(sample), &in[i]))
			return EXIT_FAILURE;
	if (onbeat_start(run))
		return EXIT_FAILURE;
	for (int i = 0; onbeat_read(in[i], sample, NULL) == ONBEAT_OK;)
		i = (i + 1) % channels;
	for (int i = 0; i < channels; i++)
		onbeat_listener_close(in[i]);
	onbeat_close(run);
	return EXIT_SUCCESS;
}
