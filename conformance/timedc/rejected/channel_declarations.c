/*
 * A channel's declaration needs a name, and a size that is a positive constant.
 */
#include <cilktc.h>

int fifochannel(4); /* error: OB4013 */
int fifochannel(none, 0); /* error: OB4013 */
int fifochannel(negative, -1); /* error: OB4013 */
int lvchannel(level, 4); /* error: OB4013 */

int main(void)
{
	return 0;
}
