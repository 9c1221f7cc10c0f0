// A program that reads with one interface and writes with the other.
#include <netchan.hpp>
#include <onbeat.hpp>

int main(int argc, char *argv[])
{
	onbeat_context *raw = nullptr;
	if (argc > 1 && onbeat_open(&raw) == ONBEAT_OK) {
		onbeat::Context context;
		netchan::NetHandler handler(argv[1]);
		handler.verbose();
		onbeat_close(raw);
	}
	return 0;
}
