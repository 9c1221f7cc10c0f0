"""Drives a whole switch: five oscillators, a wire into and out of each port, the register bus."""

from collections import deque

from cocotb.triggers import Timer
from gmii import CYCLE_PS, GAP, NC_DATA, NC_GROUP, NC_SYNC, burst

PORTS = 4
LATENCY = 46  # cycles from pin to pin, besides the parameter WAIT
COUNTERS = (
    "rt_in rt_out rt_bad_fcs rt_runts rt_cut collisions guarded be_in be_out be_bad be_runts"
    " be_jumbos be_full aborts retries lost_to_abort slips bad_preambles be_filtered be_in_full"
    " rt_lost preemptions"
).split()
POLICY, MAX_LENGTH, SYNC_PORTS, ROUND_LEAST, ROUND_LIMIT, SYNCHRONISED = 2, 3, 6, 7, 8, 9
WINDOW_NUMBER, COUNTER, WINDOW = 0x10, 0x100, 0x200
ABORT_RETRY, ABORT_DROP, FINISH, QBU = range(4)


def is_real_time(octets):
    """By the header alone, of octets behind the SFD."""
    at = 16 if octets[12:14] == b"\x81\x00" else 12
    ethertype = int.from_bytes(octets[at : at + 2], "big")
    return len(octets) >= at + 2 and octets[:6] == NC_GROUP and ethertype in (NC_DATA, NC_SYNC)


class Sent:
    """A frame that was put on a wire: its octets behind the SFD, and the cycle of its SFD."""

    def __init__(self, port, octets, errors):
        self.port = port
        self.octets = bytes(octets)
        self.errors = sorted(errors)
        self.sfd = None
        self.sfd_ps = None


class Burst:
    """What left a port between two cycles without TX_EN."""

    def __init__(self, start, start_ps):
        self.start = start
        self.start_ps = start_ps
        self.octets = bytearray()
        self.errors = []

    @property
    def end(self):
        """The cycle of its last octet."""
        return self.start + len(self.octets) - 1

    @property
    def frame(self):
        return bytes(self.octets[8:])

    @property
    def is_real_time(self):
        return is_real_time(self.frame)

    @property
    def has_preamble(self):
        begin = self.octets[:8]
        if self.errors == [len(begin) - 1]:
            begin = begin[:-1]  # aborted there
        return begin == burst(b"")[: len(begin)]


class Bench:
    """One switch. `cycle` counts its own clock's cycles; ports' clocks may differ from it."""

    def __init__(self, dut, periods=(CYCLE_PS,) * 5, phases=(0,) * 5):
        self.dut = dut
        self.periods = list(periods)  # of the switch, and of what is connected to each port
        self.next = [CYCLE_PS + phase for phase in phases]
        self.level = [0] * 5
        self.running = [True] * 5
        self.now = 0
        self.cycle = 0
        self.wires = [deque() for _ in range(PORTS)]
        self.sources = [None] * PORTS  # called for more when a wire is idle
        self.pins = [(0, 0, 0)] * PORTS
        self.sent = []
        self.bursts = [[] for _ in range(PORTS)]
        self.open = [None] * PORTS

    async def begin(self):
        for name in ["clk", "rx_clk", "rx_dv", "rx_er", "rxd", "write", "read", "address"]:
            getattr(self.dut, name).value = 0
        self.dut.write_data.value = 0
        self.dut.link_up.value = 15
        self.dut.rst.value = 1
        await self.run(6)
        self.dut.rst.value = 0
        await self.run(60)
        for port in range(PORTS):
            assert not self.bursts[port]

    async def run(self, cycles):
        """Runs for so many cycles of the switch."""
        until = self.cycle + cycles
        while self.cycle < until:
            await self.step()

    async def drain(self, idle=2000, limit=400000):
        """Runs until nothing is on any wire for some cycles."""
        quiet = 0
        while quiet < idle:
            await self.run(20)
            busy = any(self.wires) or any(self.open) or any(pin[0] for pin in self.pins)
            quiet = 0 if busy else quiet + 20
            limit -= 20
            assert limit > 0, "the switch does not come to rest"

    async def step(self):
        """To the next edge of any clock, or edges if they coincide."""
        time = min(self.next)
        if time > self.now:
            await Timer(time - self.now, "ps")
            self.now = time
        changed = [number for number in range(5) if self.next[number] == time]
        for number in changed:
            self.level[number] ^= 1
            half = self.periods[number] // 2
            self.next[number] += half if self.level[number] else self.periods[number] - half
        if 0 in changed:
            self.dut.clk.value = self.level[0]
            self.cycle += self.level[0]
        if changed != [0]:
            on = [self.level[number + 1] and self.running[number + 1] for number in range(PORTS)]
            self.dut.rx_clk.value = sum(level << number for number, level in enumerate(on))
            self.drive([number - 1 for number in changed if number and not self.level[number]])
        if 0 in changed and not self.level[0]:
            self.sample()

    def drive(self, ports):
        """New values in the midst of a cycle, so that no edge sees them change."""
        before = list(self.pins)
        for port in ports:
            if not self.running[port + 1]:
                continue
            if not self.wires[port] and self.sources[port]:
                self.sources[port]()
            value = self.wires[port].popleft() if self.wires[port] else (0, 0, 0)
            if callable(value):
                value = value()
            self.pins[port] = value
        if self.pins != before:
            self.dut.rx_dv.value = sum(pin[0] << port for port, pin in enumerate(self.pins))
            self.dut.rx_er.value = sum(pin[1] << port for port, pin in enumerate(self.pins))
            self.dut.rxd.value = sum(pin[2] << 8 * port for port, pin in enumerate(self.pins))

    def sample(self):
        enabled = int(self.dut.tx_en.value)
        if not enabled:
            self.open = [None] * PORTS
            return
        error = int(self.dut.tx_er.value)
        data = int(self.dut.txd.value)
        for port in range(PORTS):
            if not enabled >> port & 1:
                self.open[port] = None
                continue
            if self.open[port] is None:
                self.open[port] = Burst(self.cycle, self.now)
                self.bursts[port].append(self.open[port])
            now = self.open[port]
            if error >> port & 1:
                now.errors.append(len(now.octets))
            now.octets.append(data >> 8 * port & 255)

    def send(self, port, octets, preamble=7, gap=GAP, errors=()):
        """Queues a frame. `errors` are indices behind the SFD."""
        sent = Sent(port, octets, errors)
        self.sent.append(sent)

        def sfd():
            sent.sfd = self.cycle
            sent.sfd_ps = self.now
            return (1, 0, 0xD5)

        wire = self.wires[port]
        wire.extend([(1, 0, 0x55)] * preamble)
        wire.append(sfd)
        wire.extend((1, int(index in errors), octet) for index, octet in enumerate(octets))
        wire.extend([(0, 0, 0)] * gap)
        return sent

    def raw(self, port, octets, gap=GAP):
        """Queues a burst as it is."""
        self.wires[port].extend((1, 0, octet) for octet in octets)
        self.idle(port, gap)

    def idle(self, port, cycles):
        self.wires[port].extend([(0, 0, 0)] * cycles)

    async def access(self, address, write_data=None):
        """One access over the register bus."""
        self.dut.address.value = address
        self.dut.write_data.value = write_data or 0
        self.dut.write.value = int(write_data is not None)
        self.dut.read.value = int(write_data is None)
        for _ in range(20):
            await self.run(1)
            while self.level[0]:
                await self.step()
            if int(self.dut.ready.value):
                value = int(self.dut.read_data.value)
                await self.run(1)
                self.dut.write.value = 0
                self.dut.read.value = 0
                await self.run(1)
                return value
        raise AssertionError("the register bus does not answer")

    async def set_windows(self, port, windows):
        """The windows of a port: (open, close) each."""
        await self.access(WINDOW_NUMBER + port, 0)
        for number, window in enumerate(windows):
            for side, place in enumerate(window):
                await self.access(WINDOW + 64 * port + 2 * number + side, place)
        await self.access(WINDOW_NUMBER + port, len(windows))

    async def set_rounds(self, least, limit, sync_ports):
        """When an NC-SYNC is in time, and the ports that may bring one."""
        await self.access(ROUND_LEAST, least)
        await self.access(ROUND_LIMIT, limit)
        await self.access(SYNC_PORTS, sum(1 << port for port in sync_ports))

    async def counters(self, port):
        read = {}
        for number, name in enumerate(COUNTERS):
            read[name] = await self.access(COUNTER + 32 * port + number)
        return read

    async def all_counters(self):
        return [await self.counters(port) for port in range(PORTS)]


def check_gaps(bursts):
    """12 octets between any two frames, but real-time frames keep what their sender kept."""
    for first, second in zip(bursts, bursts[1:], strict=False):
        gap = second.start - first.end - 1
        both = first.is_real_time and second.is_real_time
        assert gap >= (1 if both else GAP), f"{gap} octets before cycle {second.start}"


def real_time_of(bursts):
    """(cycle of the SFD, octets, errors) of each real-time frame, with a whole preamble."""
    found = [one for one in bursts if one.is_real_time]
    assert all(one.has_preamble for one in found)
    return [(one.start + 7, one.frame, one.errors) for one in found]


def best_effort_of(bursts):
    """Whole best-effort frames."""
    whole = [one for one in bursts if not one.is_real_time and not one.errors]
    assert all(one.has_preamble for one in whole)
    return [one.frame for one in whole]
