/* Where ways join of which only one has a guard, and nothing runs: who is late there is aborted on
 * no way. */
task f(void)
{
	work();
	for (int i = 0; i < 2; i++) {
		if (i % 3 == 1)
			sdelay(11, ms);
		else
			work();
		fdelay(7, ms);
	}
}
