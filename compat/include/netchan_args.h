/*
 * netchan_args.h: the command line of programs that use netchan_standalone.h.
 *
 * All in this header, because programs with a parser of their own call it `parser` as well.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include <argp.h>
#include <netchan_standalone.h>

static struct argp_option options[] __attribute__((unused)) = {
	{"nic", 'i', "NIC", 0, "Network interface", 0},
	{"hmap_sz", 's', "HMAP_SZ", 0, "Room for this many callbacks", 0},
	{"srp", 'S', NULL, 0, "Reserve the streams (SRP)", 0},
	{"verbose", 'v', NULL, 0, "Say more", 0},
	{"log_ts", 'l', "FILE", 0, "Log timestamps as CSV", 0},
	{"log_delay", 'L', NULL, 0, "Log wake-ups as CSV; needs --log_ts", 0},
	{"ftrace", 't', NULL, 0, "Write markers into the kernel trace", 0},
	{"break", 'b', "USEC", 0, "Freeze the kernel trace above this latency", 0},
	{"txprio_cbs", 'p', "PRIO", 0, "Socket priority of classes A and B", 0},
	{"txprio_tas", 'P', "PRIO", 0, "Socket priority of scheduled channels", 0},
	{"keep_cstate", 'D', NULL, 0, "Leave the processors' idle states alone", 0},
	{"terminal", 'T', "DEVICE", 0, "Not provided", 0},
	{NULL, 0, NULL, 0, NULL, 0},
};

static error_t __attribute__((unused)) parser(int key, char *arg, struct argp_state *state)
{
	(void)state;
	switch (key) {
	case 'i':
		nc_set_nic(arg);
		break;
	case 's':
		nc_set_hmap_size(atoi(arg));
		break;
	case 'S':
		nc_use_srp();
		break;
	case 'v':
		nc_verbose();
		break;
	case 'l':
		nc_set_logfile(arg);
		break;
	case 'L':
		nc_log_delay();
		break;
	case 't':
		nc_use_ftrace();
		break;
	case 'b':
		nc_breakval(atoi(arg));
		break;
	case 'p':
		nc_tx_sock_prio(atoi(arg), SC_CLASS_A);
		nc_tx_sock_prio(atoi(arg), SC_CLASS_B);
		break;
	case 'P':
		nc_tx_sock_prio(atoi(arg), SC_TAS);
		break;
	case 'D':
		nc_keep_cstate();
		break;
	case 'T':
		nc_use_termtag(arg);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static struct argp argp __attribute__((unused)) = {
	options, parser, NULL, NULL, NULL, NULL, NULL,
};

#define GET_ARGS() argp_parse(&argp, argc, argv, 0, NULL, NULL)
