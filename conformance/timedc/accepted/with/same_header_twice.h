static void NAME(void)
{
	sdelay(SPAN, ms); /* @p */
}
