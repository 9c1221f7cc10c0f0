/*
 * What is written may have commas of its own.
 *
 * duration: 10ms
 * trace: 0 main start, end
 * trace: 0 writer start, write pairs, end
 * trace: 0 reader start, read pairs, end
 * output: 3 4
 */
#include <stdio.h>
#include <cilktc.h>

struct pair {
	int first, second;
};

struct pair fifochannel(pairs);

task writer()
{
	cwrite(pairs, (struct pair){3, 4});
}

task reader()
{
	struct pair pair;

	cread(pairs, pair);
	printf("%d %d\n", pair.first, pair.second);
}

int main(void)
{
	writer();
	reader();
}
