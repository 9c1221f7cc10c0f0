/* Linked into a program: counts what it allocates and how often it faults a page in between the end
 * of its tenth channel operation and the end of each later one, and fails it if that is not
 * nothing. */
#include "common.h"
#include <stdatomic.h>
#include <sys/resource.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static atomic_long allocations;
static long operations, warm, warm_faults;

void *malloc(size_t size)
{
	allocations++;
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	allocations++;
	return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	allocations++;
	return __libc_realloc(old, size);
}

int posix_memalign(void **place, size_t alignment, size_t size)
{
	allocations++;
	*place = __libc_memalign(alignment, size);
	return *place == NULL;
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

static void look(onbeat_status status)
{
	operations++;
	if (operations == 10) {
		warm = allocations;
		warm_faults = faults();
	}
	if (operations > 10 && status == ONBEAT_OK && faults() != warm_faults) {
		fprintf(stderr, "operation %ld faulted a page in\n", operations);
		exit(EXIT_FAILURE);
	}
	if (operations > 10 && allocations != warm) {
		fprintf(stderr, "operation %ld allocated\n", operations);
		exit(EXIT_FAILURE);
	}
	/* A counter that nothing reaches would prove nothing. */
	if (status != ONBEAT_OK && (operations < 50 || warm == 0)) {
		fprintf(stderr, "only %ld operations, %ld allocations\n", operations, warm);
		exit(EXIT_FAILURE);
	}
}

onbeat_status __real_onbeat_write_wait(onbeat_talker *, const void *, int64_t *, int64_t *);
onbeat_status __wrap_onbeat_write_wait(onbeat_talker *talker, const void *message,
				       int64_t *capture, int64_t *error)
{
	onbeat_status status = __real_onbeat_write_wait(talker, message, capture, error);

	look(status);
	return status;
}

onbeat_status __real_onbeat_read_wait(onbeat_listener *, void *, onbeat_message *);
onbeat_status __wrap_onbeat_read_wait(onbeat_listener *listener, void *message,
				      onbeat_message *info)
{
	onbeat_status status = __real_onbeat_read_wait(listener, message, info);

	look(status);
	return status;
}
