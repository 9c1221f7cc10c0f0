/*
 * Lines are counted through splices, comments
 * and macros over several lines.
 */
#include <cilktc.h>

#define LONG(a, \
	     b, \
	     c) \
	a b \
	c

int main(void)
{
	LONG(int n
	     , =
	     , 3;
	)
	/* a comment
	   of lines */ n++; \
	n++;
	sdelay(n, ms
	      ); sdelay(n, mms); /* error: OB4001 */
	return 0;
}
