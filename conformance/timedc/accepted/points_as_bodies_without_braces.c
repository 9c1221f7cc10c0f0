/*
 * A point may be the whole body of if, else, for, while and do.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start, arrive @a
 * trace: 1ms worker release @a, arrive @b
 * trace: 3ms worker release @b, arrive @b
 * trace: 5ms worker release @b, arrive @b
 * trace: 7ms worker release @b, arrive @c
 * trace: 10ms worker release @c, arrive @c
 * trace: 13ms worker release @c, arrive @d
 * trace: 17ms worker release @d, arrive @e
 * trace: 22ms worker release @e, end
 */
#include <cilktc.h>

task worker()
{
	int n = 3;

	if (n == 3)
		ftp(1, 1, ms); /* @a */
	else
		n = 4;
	while (n-- > 0)
		ftp(2, 1, ms); /* @b */
	for (n = 0; n < 2; n++)
		ftp(3, 1, ms); /* @c */
	do
		ftp(4, 1, ms); /* @d */
	while (n > 2);
	if (n == 3)
		n = 1;
	else if (n == 4)
		n = 2;
	else
		ftp(5, 1, ms); /* @e */
}

int main(void)
{
	worker();
}
