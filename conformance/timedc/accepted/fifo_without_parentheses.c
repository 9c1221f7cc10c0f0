/*
 * A fifochannel's name may stand without parentheses.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 turn start, write pairs, write barrier, read pairs, read barrier, end
 * output: 1 2 3
 */
#include <cilktc.h>

struct pair {
	int a, b;
};

struct pair fifochannel pairs;
static int fifochannel barrier;

task turn()
{
	struct pair pair = {1, 2}, came;
	int number;

	cwrite(pairs, pair);
	cwrite(barrier, 3);
	cread(pairs, came);
	cread(barrier, number);
	printf("%d %d %d\n", came.a, came.b, number);
}

int main(void)
{
	turn();
}
