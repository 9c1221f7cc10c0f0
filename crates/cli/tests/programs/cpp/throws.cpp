// A thread of the run whose body throws: the process ends as with a thread of the standard library.
#include <onbeat.h>
#include <stdexcept>

static void *throws(void *)
{
	throw std::runtime_error("thrown in a thread of the run");
}

int main()
{
	onbeat_context *run;
	onbeat_talker *out;
	onbeat_thread *thread;

	if (onbeat_open(&run) != ONBEAT_OK || onbeat_talker_open(run, "c", 8, &out) != ONBEAT_OK ||
	    onbeat_start(run) != ONBEAT_OK)
		return 1;
	if (onbeat_thread_create(run, throws, nullptr, &thread) != ONBEAT_OK)
		return 1;
	onbeat_thread_join(thread, nullptr);
	return 0;
}
