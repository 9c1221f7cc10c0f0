#include <stdint.h>

struct flag {
	uint8_t is_up;
};
