task often(void)
{
	spolicy(RR_DM);
	aperiodic(5, ms);
	timedc_keep_phase(1);
	spriority(40);
	sdelay(1, ms), sdelay(2, ms);
}
int main(void)
{
	often();
	sdelay(1, sec);
	often();
}
