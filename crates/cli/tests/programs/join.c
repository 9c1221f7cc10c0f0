/* Says as whom it runs, and what comes of joining what the environment names. */
#include "common.h"
#include <unistd.h>

int main(void)
{
	onbeat *run = NULL;
	onbeat_status status = onbeat_open(&run);

	printf("%u %d %s\n", (unsigned)geteuid(), (int)status, onbeat_last_error());
	return 0;
}
