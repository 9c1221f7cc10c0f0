// Sends back what talker.cpp sends.
#include <iostream>
#include <netchan.hpp>

#include "manifest.h"

int main(int argc, char *argv[])
{
	if (argc != 2)
		return 1;
	try {
		netchan::NetHandler none("nosuch0");
		return 2;
	} catch (const std::invalid_argument &) {
	}
	std::string nic(argv[1]), logfile;
	netchan::NetHandler nh(nic, logfile, false);
	nh.verbose();
	netchan::NetChanRx rx(nh, &nc_channels[IDX_17]);
	netchan::NetChanTx tx(nh, &nc_channels[IDX_18]);
	std::cout << "ready" << std::endl;
	uint64_t value = 0;
	while (rx.read(&value) && value != (uint64_t)-1)
		if (!tx.send(&value))
			return 3;
	return value == (uint64_t)-1 ? 0 : 4;
}
