#include <cilktc.h>

task void beat(void)
{
	while (1)
		sdelay(10, ms);
}

int main(void)
{
	beat();
	return 0;
}
