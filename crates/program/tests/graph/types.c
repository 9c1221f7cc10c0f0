typedef enum { PICK, MOVE, HOME } phase_t;
typedef uint8_t octet, *octets;
typedef octet small_t;
typedef volatile int port_t;

static const int pattern[] = { 1, 2, 3 };
static const char *const names[] = { "a", "b" };
static const char text[] = { "ab" };
static int *pointers[2];

task machine()
{
	phase_t phase = PICK;
	small_t n = 254;
	port_t port = 1;

	for (size_t i = 0; i < (sizeof(pattern) / sizeof((pattern)[0])); i++)
		sdelay(1, ms);
	for (size_t i = 0; i < (sizeof(names) / sizeof((names)[0])) + sizeof pointers; i++)
		sdelay(2, ms);
	for (size_t i = 0; i < sizeof text; i++)
		sdelay(3, ms);
	while (__builtin_expect(!!(n != 0), 1)) {
		switch (phase) {
		case PICK:
			phase = MOVE;
			sdelay(4, ms);
			break;
		case MOVE:
			phase = HOME;
			break;
		case HOME:
			n += 1;
		}
	}
	sdelay(port, ms);
}

int main(void)
{
	machine();
}
