// The C++ classes: sends, and reads what listener.cpp sends back.
#include <csignal>
#include <iostream>
#include <netchan.hpp>

#include "manifest.h"

static netchan::NetChanRx *rx;

static void sighandler(int)
{
	rx->stop();
}

int main(int argc, char *argv[])
{
	if (argc != 2)
		return 1;
	netchan::NetHandler nh(argv[1], "talker_cpp.csv", false);
	netchan::NetChanTx tx(nh, &nc_channels[IDX_17]);
	rx = new netchan::NetChanRx(nh, &nc_channels[IDX_18]);
	signal(SIGINT, sighandler);
	tx.ready_wait();
	if (nh.active_tx() != 1 || nh.active_rx() != 1 || !rx->ready())
		return 2;
	for (int i = 0; i < 20; i++) {
		uint64_t sent = tai_get_ns(), back = 0;
		if (!tx.send(&sent) || !rx->read_wait(&back))
			return 3;
		// Class B: both continue 50 ms after the answer was captured.
		if (back != sent || tai_get_ns() - sent < 50 * NS_IN_MS)
			return 4;
	}
	uint64_t end = -1;
	if (!tx.send_wait(&end))
		return 5;
	nh.stop_log();
	// A handler may stop a channel; it reads no more then, and cannot be stopped again.
	raise(SIGINT);
	uint64_t nothing = 0;
	if (rx->read(&nothing) || rx->stop())
		return 6;
	nh.stop();
	if (tx.send(&end) || tx.ready())
		return 7;
	delete rx;
	std::cout << "echoed" << std::endl;
	return 0;
}
