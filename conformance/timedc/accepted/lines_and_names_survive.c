/*
 * __LINE__, __FILE__ and __func__ are the user's, also behind translated lines.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start, arrive @a
 * trace: 10ms worker release @a, end
 * output: 15 lines_and_names_survive.c worker
 * output: 18 lines_and_names_survive.c worker
 */
#include <cilktc.h>
#include <string.h>

task worker()
{
	printf("%d %s %s\n", __LINE__, strstr(__FILE__, "lines"), __func__);
	critical { int unused = 0; (void)unused; }
	fdelay(10, ms); /* @a */
	printf("%d %s %s\n", __LINE__, strstr(__FILE__, "lines"), __func__);
}

int main(void)
{
	worker();
}
