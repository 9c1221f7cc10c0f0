"""What must come out of a switch, computed from what went in."""

from gmii import NC_SYNC, is_good
from switch_bench import (
    ABORT_DROP,
    ABORT_RETRY,
    COUNTERS,
    FINISH,
    LATENCY,
    PORTS,
    best_effort_of,
    check_gaps,
    is_real_time,
    real_time_of,
)

SHORTEST, LONGEST = 64, 1522
RESERVED = bytes.fromhex("0180c20000")
# The longest frame with preamble and gap, which is what a real-time frame waits for under FINISH.
LONGEST_WAIT = 8 + LONGEST + 12


# Octets of a shortest frame with its preamble; of an NC-SYNC with a tag.
SHORTEST_BURST, SYNC_LONGEST = 72, 68
# An NC-SYNC is not known to begin a round before it has been classified.
UNKNOWN = 4


def is_sync(octets):
    at = 16 if octets[12:14] == b"\x81\x00" else 12
    return octets[at : at + 2] == NC_SYNC.to_bytes(2, "big")


class Guard:
    """Windows of each port, (open, close) in places of the round, and when a round may begin."""

    def __init__(self, windows=None, least=0, limit=0, sync_ports=range(PORTS)):
        self.windows = windows or {}
        self.least, self.limit, self.sync_ports = least, limit, sync_ports
        self.begun = []  # cycles of the SFD of each NC-SYNC that began a round

    def longest(self, one, max_length):
        """Octets behind the SFD that the frame may have; None if it is dropped."""
        begun = [at for at in self.begun if at <= one.sfd - UNKNOWN]
        place = one.sfd - 7 - begun[-1] if begun else None
        synchronised = place is not None and place < self.limit
        windows = self.windows.get(one.port)
        if is_sync(one.octets):
            in_time = not synchronised or place >= max(self.least, 0)
            if one.port not in self.sync_ports or not in_time:
                return None
            return min(max_length, SYNC_LONGEST) if windows else max_length
        if not windows:
            return max_length
        for opens, closes in windows if synchronised else []:
            if opens <= place and place + SHORTEST_BURST <= closes:
                return min(max_length, closes - place - 8)
        return None


class Model:
    """Takes all frames that were sent, and compares bursts and counters."""

    def __init__(self, sent, wait=0, policy=ABORT_RETRY, max_length=LONGEST, guard=None):
        self.sent = [[one for one in sent if one.port == port] for port in range(PORTS)]
        self.wait, self.policy, self.max_length = wait, policy, max_length
        self.guard = guard or Guard()
        self.counts = [dict.fromkeys(COUNTERS, 0) for _ in range(PORTS)]
        self.known = {}
        self.forwarded = []  # real-time frames in their order on the bus
        self.best_effort = [[] for _ in range(PORTS)]  # good frames that each input took
        self.dedicated_path()
        for port in range(PORTS):
            for one in self.sent[port]:
                self.classify(port, one)

    def dedicated_path(self):
        frames = [one for sent in self.sent for one in sent if is_real_time(one.octets)]
        last = -100
        for one in sorted(frames, key=lambda one: (one.sfd, one.port)):
            counts = self.counts[one.port]
            longest = self.guard.longest(one, self.max_length)
            one.longest = self.max_length if longest is None else longest
            if longest is None:
                counts["guarded"] += 1
            elif one.sfd - 7 < last + 2:
                counts["collisions"] += 1
            else:
                octets = one.octets[:longest]
                errors = [8 + at for at in one.errors if at < longest]
                if len(one.octets) > longest:
                    octets = one.octets[: longest + 1]
                    errors.append(8 + longest)
                if is_sync(one.octets):
                    self.guard.begun.append(one.sfd)
                self.forwarded.append((one.port, one.sfd, octets, sorted(set(errors))))
                last = one.sfd + len(octets)

    def classify(self, port, one):
        counts = self.counts[port]
        good = is_good(one.octets) and not one.errors
        length = len(one.octets)
        if is_real_time(one.octets):
            counts["rt_in"] += 1
            counts["rt_runts"] += length < SHORTEST
            counts["rt_cut"] += length > one.longest
            counts["rt_bad_fcs"] += SHORTEST <= length <= one.longest and not good
            return
        counts["be_runts"] += length < SHORTEST
        counts["be_jumbos"] += length > LONGEST
        counts["be_bad"] += SHORTEST <= length <= LONGEST and not good
        if not good or not SHORTEST <= length <= LONGEST:
            return
        counts["be_in"] += 1
        reserved = one.octets[:5] == RESERVED and one.octets[5] < 16
        if reserved or self.known.get(one.octets[:6]) == port:
            counts["be_filtered"] += 1
        else:
            self.best_effort[port].append(one.octets)
        if not reserved and not one.octets[6] & 1:
            self.known[one.octets[6:12]] = port

    def check_real_time(self, port, bursts):
        wanted = [
            (sfd + LATENCY + self.wait, octets, errors)
            for source, sfd, octets, errors in self.forwarded
            if source != port
        ]
        found = real_time_of(bursts)
        self.counts[port]["rt_out"] += len(wanted)
        # Cut frames are compared without the octet that leaves as an error: it has no meaning.
        if self.policy != FINISH:
            assert [each[0] for each in found] == [each[0] for each in wanted]
        assert [each[2] for each in found] == [each[2] for each in wanted]
        for (at, octets, _), (least, expected, errors) in zip(found, wanted, strict=True):
            assert len(octets) == len(expected)
            assert all(
                octets[index] == expected[index]
                for index in range(len(octets))
                if index + 8 not in errors
            )
            assert least <= at <= least + LONGEST_WAIT

    def check_best_effort(self, port, bursts):
        """Frames of each input are whole and in order, and none is missing but what is counted."""
        found = best_effort_of(bursts)
        rest = list(found)
        missing = 0
        for source in range(PORTS):
            if source == port:
                continue
            wanted = [
                octets
                for octets in self.best_effort[source]
                if self.known.get(octets[:6], port) == port
            ]
            theirs = [octets for octets in found if octets in set(wanted)]
            position = iter(wanted)
            assert all(octets in position for octets in theirs), "order or number of frames"
            missing += len(wanted) - len(theirs)
            for octets in theirs:
                rest.remove(octets)
        assert not rest, "a frame that nobody sent, or not to this port"
        aborted = [one for one in bursts if one.errors and not one.is_real_time]
        for one in aborted:
            assert one.errors == [len(one.octets) - 1]
            assert one.has_preamble
        counts = self.counts[port]
        counts["be_out"] += len(found)
        counts["aborts"] += len(aborted)
        counts["retries"] += len(aborted) if self.policy == ABORT_RETRY else 0
        counts["lost_to_abort"] += len(aborted) if self.policy == ABORT_DROP else 0
        return missing - counts["lost_to_abort"]

    def check(self, bursts, counters, may_be_full=False):
        """Compares all bursts of all ports and all counters."""
        for port in range(PORTS):
            check_gaps(bursts[port])
            self.check_real_time(port, bursts[port])
            full = self.check_best_effort(port, bursts[port])
            assert full == 0 or may_be_full
            self.counts[port]["be_full"] += full
        assert counters == self.counts
