/*
 * Several tasks may read an lvchannel of structs; each sees a whole value.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 writer start, write pose, arrive @w
 * trace: 10ms..20ms/10ms writer release @w, write pose, arrive @w
 * trace: 30ms writer release @w, end
 * trace: 0 a start, arrive @a
 * trace: 5ms a release @a, read pose, end
 * trace: 0 b start, arrive @b
 * trace: 15ms b release @b, read pose, end
 * trace: 0 c start, arrive @c
 * trace: 25ms c release @c, read pose, end
 * output: a 0 0 0
 * output: b 1 1 1
 * output: c 2 2 2
 */
#include <cilktc.h>

struct pose { long x, y, z; };
struct pose lvchannel(pose);

task writer()
{
	for (long i = 0; i < 3; i++) {
		struct pose now = {i, i, i};

		cwrite(pose, now);
		sdelay(10, ms); /* @w */
	}
}

static void show(const char *who, struct pose p)
{
	printf("%s %ld %ld %ld\n", who, p.x, p.y, p.z);
}

task a() { struct pose p; sdelay(5, ms); /* @a */ cread(pose, p); show("a", p); }
task b() { struct pose p; sdelay(15, ms); /* @b */ cread(pose, p); show("b", p); }
task c() { struct pose p; sdelay(25, ms); /* @c */ cread(pose, p); show("c", p); }

int main(void)
{
	writer();
	a();
	b();
	c();
}
