/* Says which version it has, and was compiled for. SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "../common.h"

#if !ONBEAT_VERSION_AT_LEAST(ONBEAT_VERSION_MAJOR, ONBEAT_VERSION_MINOR, ONBEAT_VERSION_PATCH)
#error "a header that is older than itself"
#endif
#if ONBEAT_VERSION_AT_LEAST(ONBEAT_VERSION_MAJOR, ONBEAT_VERSION_MINOR, ONBEAT_VERSION_PATCH + 1)
#error "a header that is later than itself"
#endif

_Static_assert(ONBEAT_VERSION_NUMBER(1, 2, 3) == 0x010203, "octets of major, minor and patch");
_Static_assert(ONBEAT_VERSION_NUMBER(1, 0, 0) > ONBEAT_VERSION_NUMBER(0, 255, 255), "in order");

int main(void)
{
	EXPECT(onbeat_version() == ONBEAT_VERSION);
	EXPECT(strcmp(onbeat_version_text(), ONBEAT_VERSION_TEXT) == 0);
	printf("%d.%d.%d %s\n", ONBEAT_VERSION_MAJOR, ONBEAT_VERSION_MINOR, ONBEAT_VERSION_PATCH,
	       onbeat_version_text());
	return 0;
}
