/* What Listing 5 needs to be a program. SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <cilktc.h>

task writer(void);

int main(void)
{
	writer();
}
