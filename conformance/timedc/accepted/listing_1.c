int init(void); int read_sensor(void); int process(void);
int main(void) {
    init();
    sdelay(10, ms);
    while (1) {
        read_sensor();
        process();
        fdelay(20, ms);
    }
}
/*
 * Listing 1 of Austad et al. 2023: 10 ms, then every 20 ms (Figure 2: the first round takes 10 ms,
 * the second 16); a round that takes too long is interrupted.
 * duration: 95ms
 * trace: 0 main start
 * trace: 4ms main arrive 4
 * trace: 10ms main release 4
 * trace: 20ms main arrive 8
 * trace: 30ms main release 8
 * trace: 46ms main arrive 8
 * trace: 50ms main release 8
 * trace: 70ms main abort 8, release 8
 * trace: 80ms main arrive 8
 * trace: 90ms main release 8
 */
static int rounds;

__attribute__((exectime(4, ms))) int init(void)
{
	return 0;
}

__attribute__((exectime(3, ms))) int read_sensor(void)
{
	return ++rounds;
}

int process(void)
{
	if (rounds == 1 || rounds == 4)
		__attribute__((exectime(7, ms)));
	else if (rounds == 2)
		__attribute__((exectime(13, ms)));
	else
		__attribute__((exectime(100, ms)));
	return 0;
}
