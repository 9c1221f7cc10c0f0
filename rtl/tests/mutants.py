"""Plants one fault at a time in a copy of rtl/, and lists those that no test finds.

    mutants.py [--only TEXT] [--seed N] [--also] [-- COMMAND...]

Without a command the quick tests of the fault's module run, one file after the other until one
fails, or takes much longer than without the fault. A command runs in their place, or with --also
for what none of them finds, in a copy of the whole repository: it has to fail. Compare with the
interpreter, for one:

    mutants.py --also -- sh -c "make -s -C rtl lockstep && ONBEAT_HARDWARE_PROGRAMS=300 cargo test -q \\
        --locked -p onbeat-network-code --test network_code hardware::random"

It ends with 1 when a fault survives, when the text that it replaces is not there exactly once, or
when what has no fault fails. The copy is below target/hardware/mutants."""

import argparse
import filecmp
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "target" / "hardware" / "mutants"

# The quick tests of a file, those first that are likely to find a fault soon.
STATION = ["nc_station", "nc_station_attacks"]
TESTS = {
    "station/nc_best_effort.v": ["nc_best_effort"],
    "station/nc_buffers.v": STATION,
    "station/nc_bus.v": STATION,
    "station/nc_core.v": STATION,
    "station/nc_decode.v": ["nc_decode"],
    "station/nc_halves.v": STATION,
    "station/nc_memory.v": ["nc_memory"],
    "station/nc_pad.v": ["nc_pad"],
    "station/nc_program.v": STATION,
    "station/nc_receiver.v": ["nc_receiver", "nc_station_starts"],
    "station/nc_registers.v": ["nc_registers"],
    "station/nc_resolve.v": STATION,
    "station/nc_rounds.v": ["nc_rounds"],
    "station/nc_select.v": STATION,
    "station/nc_slice.v": STATION,
    "station/nc_station.v": STATION,
    "station/nc_transmitter.v": ["nc_transmitter"],
    "mac/crc32.v": ["crc32"],
    "mac/elastic_fifo.v": ["elastic_fifo"],
    "mac/rx_frame.v": ["rx_frame"],
}

# By file: what is replaced, and by what.
MUTANTS = {
    "station/nc_best_effort.v": [
        ("SHORTEST = 11'd60", "SHORTEST = 11'd61"),
        ("LONGEST = 11'd1518", "LONGEST = 11'd1519"),
        ("if (filled <= LONGEST) filled", "filled"),
        ("if (sent) there <= 1'b0;", "if (sent && last) there <= 1'b0;"),
        ("there <= 1'b0;\n            filled <= 11'd0;", "there <= 1'b0;"),
        ("length <= filled + 11'd1", "length <= filled"),
        ("assign ready = !there;", "assign ready = 1'b1;"),
    ],
    "station/nc_buffers.v": [
        ("wire left_bank = left_banked && left_chosen;", "wire left_bank = left_banked;"),
        ("wire is_pinned = fills && (", "wire is_pinned = 1'b0 && ("),
        ("&& fill_bank == hidden_bank", ""),
        ("wire is_copied = copying &&", "wire is_copied = 1'b0 &&"),
        ("(copy_begins || copy_is_same)", "copy_is_same"),
        ("copies_nothing || copy_ends", "copy_ends"),
        ("may_write && !is_pinned && !copies", "may_write && !is_pinned"),
        ("!read_1 && !read_2 && !may_compare && !is_copied", "!read_1 && !read_2 && !is_copied"),
        ("wire fill_reads = fills && !may_compare;", "wire fill_reads = fills;"),
        ("wanted_index < wanted_row[20:12]", "wanted_index <= wanted_row[20:12]"),
        ("&& (reads || !wanted_row[21])", ""),
        ("banks <= 256'd0;", "banks[0] <= 1'b0;"),
        ("fill_left == 9'd1) fills", "fill_left == 9'd2) fills"),
        ("(writes ? hidden_bank : !hidden_bank)", "hidden_bank"),
        ("if (rst) copying <= 1'b0;\n        else if", "if"),
        ("if (rst) fills <= 1'b0;\n        else if", "if"),
        (
            "if (commits_late) banks[wanted_buffer] <= hidden_bank;",
            "if (commits_late) banks[wanted_buffer] <= 1'b1;",
        ),
        ("assign committed = commits_late;", "assign committed = commit_now;"),
        ("with_constant <= may_compare && !", "with_constant <= may_compare && "),
        ("if (fill_begins) fill_bank <= left_bank;", "if (fill_begins) fill_bank <= 1'b0;"),
    ],
    "station/nc_bus.v": [
        ("if (!write && !read) begin\n            address", "begin\n            address"),
        ("!read && !is_answered;", "!read;"),
        ("!write && !is_answered;", "!write;"),
        ("bus_ready <= !rst && ready && (bus_write || bus_read);", "bus_ready <= !rst && ready;"),
    ],
    "station/nc_core.v": [
        ("if (past) trap = `NC_TRAP_END;\n        else if", "if"),
        ("is_send && created_words != words) trap", "1'b0) trap"),
        ("else if (sends) created <= 1'b0;", ""),
        ("may_issue && is_create && !has_data", "may_issue && is_create"),
        ("row[`NC_ROW_WAITS_DATA] && has_data", "row[`NC_ROW_WAITS_DATA] && transmitting"),
        ("row[`NC_ROW_WAITS_SEND] && !may_send", "row[`NC_ROW_WAITS_SEND] && is_send && !may_send"),
        ("wire halt_overruns = halts && countdown_over;", "wire halt_overruns = 1'b0;"),
        (
            "wire replaces = starts_countdown && countdown_there;",
            "wire replaces = starts_countdown && countdown_runs && !countdown_over;",
        ),
        (
            "immediate - 32'd1;\n                countdown_over",
            "immediate;\n                countdown_over",
        ),
        ("countdown[31:1] == 31'd0;", "countdown == 32'd0;"),
        ("if (strobe_taken) sync_timeout <= 1'b0;\n            else if", "if"),
        ("(times_out || listens_in_vain) sync_timeout", "(times_out) sync_timeout"),
        ("else if (branches && condition == `NC_OVERRUN) overrun <= 1'b0;", ""),
        ("sync_timeout || times_out;", "sync_timeout;"),
        ("count_is_true ? 32'd1 : count + 32'd1", "count + 32'd1"),
        ("counts_valid <= 16'd0;", "counts_valid[0] <= 1'b0;"),
        ("created <= 1'b0;\n            counts_valid", "counts_valid"),
        ("overrun <= 1'b0;\n            created", "created"),
        ("rx_fresh <= 1'b0;\n            sync_timeout", "sync_timeout"),
        (
            "following_past = next_pc == program_length",
            "following_past = next_pc == program_length + 13'd1",
        ),
        ("address_past = {1'b0, row[`NC_ROW_ADDRESS]} >= program_length", "address_past = 1'b0"),
        ("past <= program_length == 13'd0;", "past <= 1'b0;"),
        ("if (received) rx_fresh <= fresh;", "if (received && fresh) rx_fresh <= 1'b1;"),
        ("^ held_row[`NC_ROW_NEGATED]", ""),
        (" || held_condition[2:0] == `NC_AT_MOST;", ";"),
        ("default: relation_holds = is_below || is_equal;", "default: relation_holds = is_below;"),
        ("is_kept <= !rst && !loads_next && !loads_future;", "is_kept <= !rst && !loads_next;"),
        ("future_plus <= behind_address + 13'd1;", "future_plus <= behind_address;"),
        ("branch_plus <= behind_address + 13'd1;", "branch_plus <= behind_address;"),
        ("jumped <= loads_future;", "jumped <= 1'b0;"),
        (
            "{1'b0, words} + `NC_COST_RECEIVE - 10'd1",
            "(fresh ? {1'b0, words} : 10'd0) + `NC_COST_RECEIVE - 10'd1",
        ),
        ("listened <= listen_left == 32'd2;", "listened <= listen_left == 32'd1;"),
        ("assign stopped = state == STOPPED;", "assign stopped = 1'b0;"),
        ("flags[id[3:0]]", "flags[id[2:0]]"),
        ("next_state = countdown_over ? READY : HALTING;", "next_state = HALTING;"),
        ("strobe && (state == LISTENING || listens)", "strobe && state == LISTENING"),
        ("state == LISTENING && !strobe && listened", "state == LISTENING && listened"),
        ("countdown_runs <= 1'b0;\n            countdown <= 32'd0;", "countdown <= 32'd0;"),
    ],
    "station/nc_decode.v": [
        ("|id[7:4] || !immediate_used", "|id[7:4]"),
        ("`NC_RELATIONS", "`NC_RELATIONS + 3'd1"),
        ("|immediate[23:16]", "|immediate[23:17]"),
        ("(mode[0] && immediate_used)", "1'b0"),
        ("|immediate[31:8]", "|immediate[31:9]"),
        ("if (operation > `NC_BRANCH) error", "if (operation[5:4] != 2'd0) error"),
        ("`NC_FUTURE: reserved = id_used || mode_used;", "`NC_FUTURE: reserved = id_used;"),
    ],
    "station/nc_halves.v": [
        ("high ? high_word : low_word", "low_word"),
        ("write && !writes_high", "write"),
    ],
    "station/nc_memory.v": [
        (
            "read_data <= words[read_address];",
            "read_data <= write ? write_data : words[read_address];",
        ),
        ("if (write) words", "if (write && write_address != 0) words"),
        ("(1 << ADDRESS) - 1]", "(1 << ADDRESS) - 2]"),
    ],
    "station/nc_pad.v": [
        ("dvs <= rst ? {CYCLES{1'b0}} : next_dvs", "dvs <= next_dvs"),
        ("assign late_er = ers[CYCLES-1];", "assign late_er = 1'b0;"),
    ],
    "station/nc_program.v": [
        (".address(address), .read", ".address(next_address[ADDRESS-1:0]), .read"),
        (
            "{{(WIDTH * SLICES - `NC_ROW){1'b0}}, write_row}",
            "{{(WIDTH * SLICES - `NC_ROW){1'b0}}, write_row >> 1}",
        ),
    ],
    "station/nc_receiver.v": [
        ("SHORTEST = 12'd64", "SHORTEST = 12'd65"),
        ("LONGEST = 12'd1522", "LONGEST = 12'd1523"),
        ("DELAY = `NC_RECEIVE_STORE - 3", "DELAY = `NC_RECEIVE_STORE - 2"),
        ("er_seen || !fcs_ok", "!fcs_ok"),
        ("else if (length < SHORTEST) verdict = RUNT;\n", "\n"),
        ("else if (is_malformed) verdict = MALFORMED;\n", "\n"),
        ("header_wrong || length_is_wrong || known_end", "length_is_wrong || known_end"),
        ("coming_length == 16'd0 || coming_length", "coming_length"),
        ("> {7'd0, `NC_FRAME_WORDS}", "> {7'd0, `NC_FRAME_WORDS} + 16'd1"),
        ("known_end > {2'd0, length}", "known_end > {2'd0, length} + 14'd1"),
        ("has_tag ? 12'd17 : 12'd13", "12'd13"),
        ("BANKS == 2 && !coming_bank", "!coming_bank"),
        ("if (BANKS == 2) banks[completed] <= !banks[completed];", "banks[completed] <= 1'b1;"),
        ("if (takes && !completes_same) fresh_bits", "if (takes) fresh_bits"),
        ("completed_is_fresh && !is_taken", "completed_is_fresh"),
        ("(does_receive && id == completed)", "1'b0"),
        ("|| (received && received_id == completed)", ""),
        ("|| (received_before && received_id_before == completed)", ""),
        ("fits <= coming_known && coming_length", "fits <= coming_length"),
        ("words != 9'd1 : presents", "1'b1 : presents"),
        ("if (rst || sof) begin", "if (sof) begin"),
        ("reached <= rst ? VERDICT_NONE : verdict;", "reached <= verdict;"),
        ("delayed <= rst ? {(4 * DELAY){1'b0}} : {", "delayed <= {"),
        ("fresh_bits <= 256'd0;", "fresh_bits[0] <= 1'b0;"),
        ("&& !is_station;", ";"),
        ("if (!eof || !begun) verdict", "if (!eof) verdict"),
        ("is_next_type && is_group && begun", "is_next_type && is_group"),
        ("type_strobe && begun) begin", "type_strobe) begin"),
        ("copies <= !rst && presented", "copies <= presented"),
        ("(received ? fresh : taken);", "taken;"),
        ("if (is_round && octet != 8'd0) header_wrong", "if (octet != 8'd0 && 1'b0) header_wrong"),
        ("&& fits && comes_more;", "&& fits;"),
        ("is_next_type && is_group && begun", "is_next_type && begun"),
    ],
    "station/nc_registers.v": [
        ("is_counter = address[7:5] == 3'd1 && ", "is_counter = address[7:6] == 2'd0 && "),
        ("if (rst || primes) counters[i]", "if (rst) counters[i]"),
        ("i == SYNC_TIMEOUTS && counts_no_wait", "1'b0"),
        ("write_data[0] && !runs;", "write_data[0];"),
        ("accesses && write && !runs;", "accesses && write;"),
        ("4'h1: exists = address[19:0] >> (PROGRAM + 1) == 20'd0;", "4'h1: exists = 1'b1;"),
        ("4'h4: exists = address[19:12] == 8'd0;", "4'h4: exists = address[19:13] == 7'd0;"),
        ("of_program_word && writes && !runs;", "of_program_word && writes;"),
        ("(!runs || (read && of_commit))", "!runs"),
        ("8'h09: was_refused <= 1'b0;", "8'h09: ;"),
        ("if (buffer_refused || is_impossible)", "if (buffer_refused)"),
        ("if (!runs) begin\n                    case", "begin\n                    case"),
        ("flags <= 16'd0;\n                last_trap", "last_trap"),
        ("program_length <= 13'd0;\n", "\n"),
        ("of_register <= region == 4'h0 && exists", "of_register <= region == 4'h0"),
        ("if (starts) begin\n                flags", "if (1'b0) begin\n                flags"),
        ("write_data > LONGEST ? LONGEST[12:0] : write_data[12:0]", "write_data[12:0]"),
        ("wire accesses = (writes || reads) && is_new", "wire accesses = (writes || reads)"),
        ("source[47:32] <= write_data[15:0]", "source[47:32] <= write_data[31:16]"),
        ("if (primes) runs <= 1'b1;", "if (starts) runs <= 1'b1;"),
    ],
    "station/nc_resolve.v": [
        ("assign done = step == 4'd9;", "assign done = step == 4'd5;"),
        ("is_word && operation == `NC_CREATE", "is_good && operation == `NC_CREATE"),
        (
            "if (!message_known) trap = `NC_TRAP_MESSAGE;\n                    else if "
            "(!left_known || !left_is_input)",
            "if (!left_known || !left_is_input)",
        ),
        ("else if (other_length) trap = `NC_TRAP_LENGTH;", ""),
        ("!left_known || !left_is_input", "!left_known"),
        ("{1'b0, left_index} >= left_words", "{1'b0, left_index} > left_words"),
        ("{1'b0, right_index} >= right_words", "{1'b0, right_index} > right_words"),
        ("{{8{immediate[23]}}, immediate[23:0]}", "{8'd0, immediate[23:0]}"),
        ("row[`NC_ROW_LEFT_BANKED] <= !left_is_input;", "row[`NC_ROW_LEFT_BANKED] <= 1'b1;"),
        ("{11'd0, !right_is_input,", "{11'd0, 1'b1,"),
        ("row[`NC_ROW_ONE] <= immediate == 32'd1;", "row[`NC_ROW_ONE] <= 1'b0;"),
        ("row[`NC_ROW_ZERO] <= immediate == 32'd0;", "row[`NC_ROW_ZERO] <= 1'b0;"),
        ("if (rst || !load || done) step", "if (rst || done) step"),
    ],
    "station/nc_rounds.v": [
        ("has_begun && (is_own || master != source)", "is_own || master != source"),
        ("if (begins) round <= round + 32'd1;", "if (begins) round <= round + 32'd2;"),
        ("round <= 32'd0;\n", "\n"),
        ("has_begun <= 1'b0;\n", "\n"),
        ("is_own <= 1'b0;", ""),
        ("counts_discarded <= came && !was_taken;", "counts_discarded <= came;"),
    ],
    "station/nc_select.v": [
        ("place <= number[7:4];", "place <= number[3:0];"),
        ("i < 16;", "i < 15;"),
    ],
    "station/nc_slice.v": [
        ("words [0:(1 << ADDRESS) - 1]", "words [0:(1 << ADDRESS) - 2]"),
        ("other_read <= words[other_address]", "other_read <= words[address]"),
    ],
    "station/nc_station.v": [
        ("wire link_up = link_synchronised[1];", "wire link_up = link_synchronised[0];"),
        ("wire core_rst = !runs;", "wire core_rst = rst;"),
        (
            "buffer_asked <= {1'b0, asked_buffer} < buffers;",
            "buffer_asked <= {1'b0, asked_buffer} <= buffers;",
        ),
        (
            "address[20] ? address[16:9] : address[7:0]",
            "address[20] ? address[15:8] : address[7:0]",
        ),
        (
            "counts_unknown, counts_received, starts_data,\n        counts_seen",
            "counts_received, counts_unknown, starts_data,\n        counts_seen",
        ),
        (".CYCLES(RECEIVE_PAD)", ".CYCLES(0)"),
        (".BANKS(BANKS)", ".BANKS(2)"),
    ],
    "station/nc_transmitter.v": [
        ("GAP = 5'd12", "GAP = 5'd11"),
        ("ahead <= `NC_SEND_START - 5'd2", "ahead <= `NC_SEND_START - 5'd1"),
        ("gap <= `NC_SEND_START + 5'd1", "gap <= `NC_SEND_START + 5'd2"),
        ("PAYLOAD_WORDS_OCTETS = 6'd42", "PAYLOAD_WORDS_OCTETS = 6'd41"),
        ("type_end <= header_last - 11'd3", "type_end <= header_last - 11'd4"),
        ("part == CHECK ? crc[7:0] : check[7:0]", "part == CHECK ? crc[7:0] : check[31:24]"),
        ("wire [31:0] check = ~crc_next;", "wire [31:0] check = crc_next;"),
        ("best_length} + 32'd32", "best_length} + 32'd12"),
        (
            "best_there && best_fits && !starts && !busy",
            "best_there && best_fits && !starts && !on_wire",
        ),
        ("best_there && best_known\n", "best_there\n"),
        ("(stopped || (halting", "((halting"),
        ("frame_words <= starts_data ? words : 9'd1", "frame_words <= words"),
        ("gap <= on_wire ? GAP : gap", "gap <= gap"),
        ("ahead <= 5'd0;\n            on_wire", "on_wire"),
        ("on_wire && !frame_ends)) && is_data && !is_best", "on_wire)) && is_data && !is_best"),
        ("&& !starts && !starts_best));", "&& !starts_best));"),
        ("is_data ? frame_message : 8'd0", "frame_message"),
        ("PAYLOAD_WORDS_OCTETS} - words_octets - 11'd1", "PAYLOAD_WORDS_OCTETS} - words_octets"),
        ("next_place[2:0] == 3'd7 ? 8'hd5", "next_place[2:0] == 3'd6 ? 8'hd5"),
        ("place_ahead = next_place + 11'd2", "place_ahead = next_place + 11'd1"),
        ("current[23:0], 8'd0}", "current[15:0], 16'd0}"),
    ],
    "mac/crc32.v": [
        ("32'hedb88320", "32'hedb88321"),
        ("crc[7:0] ^ octet", "crc[7:0] ^ {octet[0], octet[7:1]}"),
    ],
    "mac/elastic_fifo.v": [
        ("level >= FILL", "level > FILL"),
        ("PATIENCE = 4'd15;", "PATIENCE = 4'd0;"),
        ("lost <= 1'b1;\n            overflow", "overflow"),
    ],
    "mac/rx_frame.v": [
        ("CRC_GOOD = 32'hdebb20e3", "CRC_GOOD = 32'hdebb20e2"),
        ("count == 12'd13", "count == 12'd14"),
        ("error <= dv && (error || er);", "error <= dv && er;"),
        ("count != 12'hfff", "1'b1"),
        ("count < 12'd6)", "count < 12'd7)"),
        ("state <= NO_FRAME;  // what", "state <= PREAMBLE;  // what"),
    ],
}


class Copy:
    """A copy of what is in the repository, in which faults are planted."""

    def __init__(self, whole, name):
        self.place = PLACE / (name or ("repository" if whole else "rtl"))
        said = subprocess.run(
            ["git", "ls-files", "-z", "-co", "--exclude-standard", *([] if whole else ["rtl"])],
            cwd=ROOT, stdout=subprocess.PIPE, check=True,
        )  # fmt: skip
        for name in said.stdout.decode().split("\0"):
            source, copied = ROOT / name, self.place / name
            # What differs gets a new time: what was made of a fault is made again.
            if source.is_file() and not (copied.is_file() and filecmp.cmp(source, copied, False)):
                copied.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, copied)
        # What the tests of the copy run with is that of the repository.
        tools = self.place / "target" / "hardware" / "venv"
        tools.parent.mkdir(parents=True, exist_ok=True)
        tools.unlink(missing_ok=True)
        tools.symlink_to(Path(sys.executable).parents[1])
        # What each test may take, by its name: known once it has run without a fault.
        self.limits = {}

    def sound(self):
        """The modules are those of the repository."""
        for name in MUTANTS:
            text = (ROOT / "rtl" / name).read_text(encoding="utf-8")
            path = self.place / "rtl" / name
            if path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")

    def plant(self, name, old, new):
        """Whether there is such a text, once."""
        self.sound()
        path = self.place / "rtl" / name
        text = path.read_text(encoding="utf-8")
        if text.count(old) != 1:
            return False
        path.write_text(text.replace(old, new), encoding="utf-8")
        return True

    def compiles(self):
        """A fault is one of behaviour, not of language."""
        rtl = self.place / "rtl"
        sources = [*(rtl / "mac").glob("*.v"), *(rtl / "station").glob("*.v")]
        arguments = ["iverilog", "-g2005", "-t", "null", "-s", "nc_station", f"-I{rtl / 'station'}"]
        return subprocess.run([*arguments, *sources], check=False).returncode == 0

    def fails(self, tests, command, seed):
        """What finds a fault, or None."""
        for test in tests:
            runner = [sys.executable, str(self.place / "rtl" / "tests" / "run.py")]
            start = time.monotonic()
            if not passes([*runner, "--seed", str(seed), test], self.limits.get(test)):
                return test
            self.limits.setdefault(test, LONGER * (time.monotonic() - start) + LONGER_SECONDS)
        if command:
            done = subprocess.run(command, cwd=self.place, **QUIET, check=False)
            return "the command" if done.returncode else None
        return None


# A fault may keep a simulation from its end. It is found if a test takes so much longer.
LONGER = 2
LONGER_SECONDS = 60
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}


def passes(command, limit):
    """Whether all of it does, within so many seconds if a limit is known; its first failure ends
    it."""
    quiet = QUIET | {"stdout": subprocess.PIPE}
    with subprocess.Popen(command, **quiet, text=True, start_new_session=True) as runs:
        late = threading.Timer(limit or 0, os.killpg, (runs.pid, signal.SIGKILL))
        if limit:
            late.start()
        try:
            if any(line.startswith("test_") and " failed, " in line for line in runs.stdout):
                return False
            return runs.wait() == 0
        finally:
            late.cancel()
            # Its simulators are of its group. Interrupted, none of them goes on.
            if runs.poll() is None:
                os.killpg(runs.pid, signal.SIGTERM)


def shown(name, old, new):
    return f"{name}: {' '.join(old.split())!r} -> {' '.join(new.split())!r}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="faults whose line has this text")
    parser.add_argument("--copy", help="its name, where two run at once")
    parser.add_argument("--seed", type=int, default=1, help="of the random tests")
    parser.add_argument("--also", action="store_true", help="the command where no test finds it")
    parser.add_argument("command", nargs="*", help="behind --: has to fail, in the tests' place")
    arguments = parser.parse_args()
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

    chosen = [
        (name, old, new)
        for name, rows in MUTANTS.items()
        for old, new in rows
        if arguments.only in shown(name, old, new)
    ]
    copy = Copy(bool(arguments.command), arguments.copy)
    copy.sound()
    by_tests = arguments.also or not arguments.command
    tests = sorted({test for name, *_ in chosen for test in TESTS[name] if by_tests})
    if found := copy.fails(tests, arguments.command, arguments.seed):
        sys.exit(f"without a fault {found} fails")
    survivors, lost = [], []
    for name, old, new in chosen:
        line = shown(name, old, new)
        start = time.monotonic()
        if not copy.plant(name, old, new) or not copy.compiles():
            lost.append(line)
            print(f"NOT PLANTED {line}", flush=True)
            continue
        found = copy.fails(TESTS[name] if by_tests else [], arguments.command, arguments.seed)
        if found is None:
            survivors.append(line)
        word = f"found by {found}" if found else "SURVIVES"
        print(f"{word}, {time.monotonic() - start:.1f} s: {line}", flush=True)
    copy.sound()
    print(f"{len(chosen)} faults: {len(survivors)} survive, {len(lost)} were not planted")
    for line in survivors + lost:
        print(line)
    sys.exit(1 if survivors or lost else 0)


if __name__ == "__main__":
    main()
