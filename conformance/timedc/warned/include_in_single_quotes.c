/*
 * A quoted #include with single quotes, as in Listing 5, is taken as with double ones.
 * duration: 1s
 * trace: 0 main start, arrive @p
 * trace: 6ms main release @p, end
 */
#include <cilktc.h>
#include 'with/pace.h' /* warning: OB4104 */

int main(void)
{
	PACE(3); /* @p */
	return 0;
}
