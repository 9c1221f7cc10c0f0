static inline void move(void)
{
	chan_write(1);
	queue_write(1);
}

#include <cilktc.h>

task beat(void)
{
	while (1)
		sdelay(10, ms);
}

int main(void)
{
	beat();
	return 0;
}
