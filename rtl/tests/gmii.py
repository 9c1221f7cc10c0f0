"""Frames as octets on a GMII, and what the tests of several modules do with them."""

import zlib

PREAMBLE = bytes([0x55] * 7)
SFD = 0xD5
NC_DATA = 0x88B5
NC_SYNC = 0x88B6
NC_GROUP = bytes.fromhex("034f424e4300")
GAP = 12
CYCLE_PS = 8000


def with_fcs(octets):
    """The octets of a frame with the check sequence behind them."""
    return bytes(octets) + zlib.crc32(octets).to_bytes(4, "little")


def is_good(octets):
    """Whether the check sequence at the end is right."""
    return len(octets) >= 4 and with_fcs(octets[:-4]) == octets


def frame(destination, source, ethertype, payload, tag=None, padded=True):
    """An Ethernet frame behind its SFD. `tag` is the 16 bits behind 0x8100."""
    head = destination + source
    if tag is not None:
        head += (0x8100).to_bytes(2, "big") + tag.to_bytes(2, "big")
    octets = head + ethertype.to_bytes(2, "big") + payload
    if padded:
        octets += bytes(max(0, 60 - len(octets)))
    return with_fcs(octets)


def address(number):
    """A station's own, individual address."""
    return bytes([2, 0, 0, 0, number >> 8 & 255, number & 255])


# 802.3br tables 99-1 and 99-2: SMD-S, which are also the fragment counts, and SMD-C.
SMD_START = (0xE6, 0x4C, 0x7F, 0xB3)
SMD_CONTINUE = (0x61, 0x52, 0x9E, 0x2A)


def mcrc(octets):
    """The check sequence of a fragment that is not the last, of all that has left of the frame."""
    fcs = zlib.crc32(octets).to_bytes(4, "little")
    return bytes([fcs[0] ^ 255, fcs[1] ^ 255]) + fcs[2:]


def fragments(octets, cuts, number):
    """The bursts of a frame that is cut at these indices."""
    found = []
    edges = [0, *cuts, len(octets)]
    for count, (first, last) in enumerate(zip(edges, edges[1:], strict=False)):
        if count == 0:
            head = PREAMBLE + bytes([SMD_START[number % 4]])
        else:
            codes = [SMD_CONTINUE[number % 4], SMD_START[(count - 1) % 4]]
            head = PREAMBLE[:6] + bytes(codes)
        check = b"" if last == len(octets) else mcrc(octets[:last])
        found.append(head + octets[first:last] + check)
    return found


def burst(octets, preamble=7):
    """What is on the wire: preamble, SFD, frame."""
    return bytes([0x55] * preamble) + bytes([SFD]) + octets
