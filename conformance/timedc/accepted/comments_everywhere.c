/*
 * Comments may stand between all words of a construct, and constructs in comments and strings are
 * none.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start, arrive @a
 * trace: 10ms worker release @a, arrive @b
 * trace: 20ms worker release @b, end
 * output: sdelay(1, ms); task f() { fdelay(2, ms); }
 * output: fdelay(10, ms) "critical {"
 */
#include <cilktc.h>

#define SHOW(x) #x

/* task ghost() { sdelay(1); } */
// task ghost() { while (1) ghost(); }

task/*a*/worker/*b*/(/*c*/)/*d*/
{
	fdelay/* @a *//*(*/(/*,*/10/*)*/,/*sec*/ms/*us*/)/*;*/;
	// fdelay(1, ms); \
	   fdelay(2, ms);
	puts("sdelay(1, ms); task f() { fdelay(2, ms); }");
	printf("%s %s\n", SHOW(fdelay(10, ms)), SHOW("critical {"));
	fdelay(10, // @b
	       /* the unit */ ms);
}

int main(void)
{
	worker(/* no arguments */);
}
