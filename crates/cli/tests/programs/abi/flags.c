/* Every bit of every argument that holds flags: known, or refused by its number.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "../common.h"

static const uint32_t known = ONBEAT_UNTAGGED | ONBEAT_BUSY_POLL | ONBEAT_TIMESTAMPS | ONBEAT_TRACE
	| ONBEAT_FOLLOW_SCHEDULE | ONBEAT_LAUNCH_TIME | ONBEAT_RESERVE | ONBEAT_NO_MEMORY_LOCK
	| ONBEAT_NO_CPU_LATENCY;

/* There is no such interface: flags that are accepted come as far as that. */
static onbeat_status opens(uint32_t flags)
{
	const onbeat_interface interface = { .name = "nosuch0", .flags = flags };
	onbeat *none;

	return onbeat_open_interface(&interface, NULL, 0, &none);
}

int main(void)
{
	char text[80];

	EXPECT(opens(0) == ONBEAT_E_NETWORK && opens(known) == ONBEAT_E_NETWORK);
	for (int bit = 0; bit < 32; bit++) {
		const uint32_t flag = UINT32_C(1) << bit;

		if (known & flag) {
			EXPECT(opens(flag) == ONBEAT_E_NETWORK);
			continue;
		}
		EXPECT(opens(known | flag) == ONBEAT_E_ARGUMENT);
		snprintf(text, sizeof(text), "`interface->flags` has bits that are not known: %#x",
			 (unsigned)flag);
		EXPECT(strcmp(onbeat_last_error(), text) == 0);
	}
	EXPECT(opens(UINT32_MAX) == ONBEAT_E_ARGUMENT);
	snprintf(text, sizeof(text), "`interface->flags` has bits that are not known: %#x",
		 (unsigned)~known);
	EXPECT(strcmp(onbeat_last_error(), text) == 0);
	return 0;
}
