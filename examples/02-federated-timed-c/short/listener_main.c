/* What Listing 6 needs to be a program. SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <cilktc.h>

task reader(void);

int main(void)
{
	reader();
}
