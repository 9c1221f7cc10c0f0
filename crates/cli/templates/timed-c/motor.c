/* Follows the robot's speed. Replace turn() by the code that sets your inverter. */
#include <cilktc.h>
#include <timedc_avtp.h>
#include "channels.h"

static __attribute__((exectime(50, 100, us))) void turn(int64_t mm_s)
{
	(void)mm_s;
}

task drive()
{
	NETFIFO_RX(speed);
	while (1) {
		int64_t mm_s;
		READ_WAIT(speed, &mm_s);
		turn(mm_s);
	}
}

int main(void)
{
	drive();
}
