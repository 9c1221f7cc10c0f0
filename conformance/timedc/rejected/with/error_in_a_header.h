static inline void pause_shortly(void)
{
	sdelay(10, parsecs); /* error: OB4001 */
}
