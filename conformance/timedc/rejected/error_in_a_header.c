/*
 * An error in a header is shown there.
 */
#include <cilktc.h>
#include "with/error_in_a_header.h"

int main(void)
{
	pause_shortly();
	return 0;
}
