/*
 * netchan.hpp: the interface of netchan.h as C++ classes.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include <iostream>
#include <stdexcept>
#include <string>

#include <logger.h>
#include <netchan.h>

namespace netchan {

// An interface. Its channels end with it.
class NetHandler {
public:
	// Throws std::invalid_argument when there is no such interface, or it may not be used.
	NetHandler(std::string ifname, std::string logfile, bool srp = false)
		: nh(nh_create_init(ifname.c_str(), 127, logfile.empty() ? nullptr : logfile.c_str()))
	{
		if (!nh)
			throw std::invalid_argument("netchan::NetHandler: no usable interface " + ifname);
		nh_set_srp(nh, srp);
	}
	NetHandler(std::string ifname, const char *logfile, bool srp = false)
		: NetHandler(ifname, std::string(logfile ? logfile : ""), srp)
	{
	}
	NetHandler(std::string ifname, int) : NetHandler(ifname, "") {}
	explicit NetHandler(std::string ifname, bool srp = false) : NetHandler(ifname, "", srp) {}
	NetHandler(const NetHandler &) = delete;
	NetHandler &operator=(const NetHandler &) = delete;
	~NetHandler() { nh_destroy(&nh); }

	bool set_tx_prio(int tx_prio, enum stream_class sc = SC_CLASS_A)
	{
		return nh_set_tx_prio(nh, sc, tx_prio);
	}
	struct channel *new_tx_channel(struct channel_attrs *attrs) { return chan_create_tx(nh, attrs); }
	struct channel *new_rx_channel(struct channel_attrs *attrs) { return chan_create_rx(nh, attrs); }
	int active_tx(void) { return nh_get_num_tx(nh); }
	int active_rx(void) { return nh_get_num_rx(nh); }
	void verbose(void) { nh_set_verbose(nh, true); }
	void stop(void) { nh_stop(nh); }

	// Writes the log and ends it, before the handler ends.
	void stop_log(void) { log_stop(nh->logger); }

private:
	struct nethandler *nh;
};

// One end of a channel. The handler owns what is behind it. When it could not be made, which a line
// on standard error explains, all it does fails.
class NetChan {
public:
	bool stop(void) { return chan_stop(ch); }
	bool ready(void) { return chan_ready(ch); }
	// Within 100 ms.
	bool ready_wait_once(void) { return chan_ready_timedwait(ch, 100 * NS_IN_MS) == 0; }
	void ready_wait(void)
	{
		while (ch && !ch->stopping && !ready_wait_once())
			INFO(ch, "not ready yet");
	}
	void dump_state(void) { chan_dump_state(ch); }

protected:
	explicit NetChan(struct channel *end) : ch(end) {}
	struct channel *ch;
};

class NetChanTx : public NetChan {
public:
	NetChanTx(NetHandler &nh, struct channel_attrs *attrs) : NetChan(nh.new_tx_channel(attrs)) {}
	bool send(void *data) { return ch && chan_send_now(ch, data) == ch->payload_size; }
	bool send_wait(void *data) { return ch && chan_send_now_wait(ch, data) == ch->payload_size; }
};

class NetChanRx : public NetChan {
public:
	NetChanRx(NetHandler &nh, struct channel_attrs *attrs) : NetChan(nh.new_rx_channel(attrs)) {}
	bool read(void *data) { return chan_read(ch, data) > 0; }
	bool read_wait(void *data) { return chan_read_wait(ch, data) > 0; }
};

} // namespace netchan
