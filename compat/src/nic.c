/*
 * nic.c: what the kernel says of a network interface.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"

#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>

#define ASSUMED_MBPS 1000

static bool ask(const char *name, unsigned long request, struct ifreq *ifr)
{
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return false;
	strncpy(ifr->ifr_name, name, IFNAMSIZ - 1);
	int result = ioctl(sock, request, ifr);
	close(sock);
	return result == 0;
}

bool nic_exists(const char *name)
{
	struct ifreq ifr = {0};
	return name[0] && strlen(name) < IFNAMSIZ && ask(name, SIOCGIFINDEX, &ifr);
}

bool nic_is_loopback(const char *name)
{
	struct ifreq ifr = {0};
	return ask(name, SIOCGIFFLAGS, &ifr) && (ifr.ifr_flags & IFF_LOOPBACK);
}

unsigned nic_speed_mbps(const char *name)
{
	struct ethtool_cmd command = {.cmd = ETHTOOL_GSET};
	struct ifreq ifr = {0};
	ifr.ifr_data = (void *)&command;
	if (!ask(name, SIOCETHTOOL, &ifr))
		return ASSUMED_MBPS;
	unsigned speed = ethtool_cmd_speed(&command);
	return speed == 0 || speed == (unsigned)SPEED_UNKNOWN ? ASSUMED_MBPS : speed;
}

bool nic_has_ptp_clock(const char *name)
{
	struct ethtool_ts_info info = {.cmd = ETHTOOL_GET_TS_INFO, .phc_index = -1};
	struct ifreq ifr = {0};
	ifr.ifr_data = (void *)&info;
	return ask(name, SIOCETHTOOL, &ifr) && info.phc_index >= 0;
}
