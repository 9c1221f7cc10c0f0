/*
 * Channels carry values of any type: structs with arrays, pointers, doubles, typedefs, unions.
 * duration: 1s
 * trace: 0 main start
 * trace: 0 main write points, write numbers, write words, write mixed, write stamps
 * trace: 0 main end
 * trace: 0 reader start
 * trace: 0 reader read points, read numbers, read words, read mixed, read stamps, end
 * output: 1 2 a-b 2.50 word 5 123456789012
 */
#include <cilktc.h>

struct point { int x, y; char name[8]; };
union either { int i; float f; };
typedef uint64_t stamp;

struct point fifochannel(points);
double fifochannel(numbers, 4);
const char *fifochannel(words);
union either fifochannel(mixed);
stamp fifochannel(stamps, 16);

task reader()
{
	struct point point;
	double number;
	const char *word;
	union either either;
	stamp at;

	cread(points, point);
	cread(numbers, number);
	cread(words, word);
	cread(mixed, either);
	cread(stamps, at);
	printf("%d %d %s %.2f %s %d %llu\n", point.x, point.y, point.name, number, word, either.i,
	       (unsigned long long)at);
}

int main(void)
{
	struct point point = {1, 2, "a-b"};

	cwrite(points, point);
	cwrite(numbers, 2.5);
	cwrite(words, "word");
	cwrite(mixed, (union either){.i = 5});
	cwrite(stamps, 123456789012);
	reader();
}
