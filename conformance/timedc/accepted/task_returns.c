/*
 * The body of a task may end, return nothing, or return NULL or another pointer.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 ends start, end
 * trace: 0 null start, end
 * trace: 0 pointer start, arrive @p
 * trace: 1ms pointer release @p, end
 */
#include <cilktc.h>

task ends()
{
}

task null(int early)
{
	if (early)
		return NULL;
	sdelay(1, sec);
	return NULL;
}

static int kept;

task pointer(void)
{
	sdelay(1, ms); /* @p */
	return &kept;
}

int main(void)
{
	ends();
	null(1);
	pointer();
	return 0;
}
