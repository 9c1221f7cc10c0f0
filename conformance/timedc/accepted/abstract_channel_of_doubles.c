/*
 * An abstract channel of any name and type, a start that is not wanted here, and a function of the
 * program's own that is called like one of an abstract channel's.
 * duration: 25ms
 * cc: --bind level=fifo,double --starts writer,reader
 * trace: 0 main start, end
 * trace: 0 writer start, reach @w, write level, arrive @p
 * trace: 10ms..20ms/10ms writer release @p, reach @w, write level, arrive @p
 * trace: 0 reader start, reach @r, read level, reach @r
 * trace: 10ms..20ms/10ms reader read level, reach @r
 * output: 0.5 1.0 1.5
 */
#include <stdio.h>
#include <cilktc.h>

static double chan_read(void)
{
	return 0.5;
}

task writer(int first)
{
	for (int i = first;; i++) {
		level_write(i * chan_read()); /* @w */
		sdelay(10, ms); /* @p */
	}
}

task reader(void)
{
	for (int i = 0;; i++) {
		double level;

		level = level_read(); /* @r */
		printf(i < 2 ? "%.1f " : "%.1f\n", level);
	}
}

task elsewhere(int n)
{
	while (n)
		level_write(n);
}

int main(void)
{
	int starts = 0;

	elsewhere(++starts);
	writer(starts);
	reader();
}
