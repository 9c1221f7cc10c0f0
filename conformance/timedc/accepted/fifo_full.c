/*
 * A full fifochannel drops the new value: cwrite returns 1, and a line at the end says how many.
 * duration: 1s
 * trace: 0 main start, write small, write small, full small, full small, arrive @m
 * trace: 10ms main release @m, write small, end
 * trace: 0 reader start, arrive @r
 * trace: 5ms reader release @r, read small
 * trace: 5ms reader arrive @s
 * trace: 15ms reader release @s, read small, read small, end
 * output: 0 0 1 1 2
 * output: 0 2
 * output: 10 11 14
 * says: small
 */
#include <cilktc.h>

int fifochannel(small, 2);

task reader()
{
	int a, b, c;

	sdelay(5, ms); /* @r */
	cread(small, a);
	sdelay(10, ms); /* @s */
	cread(small, b);
	cread(small, c);
	printf("%d %d %d\n", a, b, c);
}

int main(void)
{
	int done[4];

	for (int i = 0; i < 4; i++)
		done[i] = cwrite(small, 10 + i);
	printf("%d %d %d %d %d\n", done[0], done[1], done[2], done[3], nelem(small));
	reader();
	sdelay(10, ms); /* @m */
	done[0] = cwrite(small, 14);
	printf("%d %d\n", done[0], nelem(small));
}
