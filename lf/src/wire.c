/*
 * wire.c: the header of a tagged message between federates.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "internal.h"

static void put(unsigned char *out, uint64_t value, size_t octets)
{
	for (size_t i = 0; i < octets; i++)
		out[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get(const unsigned char *in, size_t octets)
{
	uint64_t value = 0;
	for (size_t i = 0; i < octets; i++)
		value |= (uint64_t)in[i] << (8 * i);
	return value;
}

void lf_encode(const struct lf_header *header, unsigned char out[LF_HEADER])
{
	out[0] = header->type;
	put(out + 1, header->port, 2);
	put(out + 3, header->federate, 2);
	put(out + 5, header->length, 4);
	put(out + 9, (uint64_t)header->time, 8);
	put(out + 17, header->microstep, 4);
}

void lf_decode(const unsigned char in[LF_HEADER], struct lf_header *header)
{
	header->type = in[0];
	header->port = lf_decode16(in + 1);
	header->federate = lf_decode16(in + 3);
	header->length = lf_decode32(in + 5);
	header->time = (int64_t)get(in + 9, 8);
	header->microstep = lf_decode32(in + 17);
}

uint16_t lf_decode16(const unsigned char *in)
{
	return (uint16_t)get(in, 2);
}

uint32_t lf_decode32(const unsigned char *in)
{
	return (uint32_t)get(in, 4);
}
