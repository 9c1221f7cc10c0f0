#include <stdint.h>

struct sample {
	uint32_t count;
	double at;
};

struct list {
	struct sample *first;
};
