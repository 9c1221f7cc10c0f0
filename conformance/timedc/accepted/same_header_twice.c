/*
 * A header without a guard may be included twice, each time another function.
 * duration: 1s
 * trace: 0 main start, arrive same_header_twice.h:@p
 * trace: 3ms main release same_header_twice.h:@p, arrive same_header_twice.h:@p.2
 * trace: 8ms main release same_header_twice.h:@p.2, end
 */
#include <cilktc.h>

#define NAME three
#define SPAN 3
#include "with/same_header_twice.h"
#undef NAME
#undef SPAN
#define NAME five
#define SPAN 5
#include "with/same_header_twice.h"

int main(void)
{
	three();
	five();
	return 0;
}
