// The control of a station: fetches, issues, waits.
//
// An instruction is issued in the cycle c in which its row is there and it need not wait; what
// guards and `receive` look at is looked at then, and its traps are known then. What is behind an
// output of a memory goes through a register first. So a guard that compares words is decided in
// c + 2, and its instruction takes three cycles.
//
// The next row is always there already: that of the next address, that of the countdown's target,
// and that of a branch's target. One port of the memory reads on behind the row that is next, the
// other one behind a target.
`default_nettype none
`include "nc_table.vh"
`include "nc_row.vh"

module nc_core (
    input  wire               clk,
    input  wire               rst,
    // The last cycle of the reset, at the least the fourth one.
    input  wire               primes,

    // Two ports of the program: the row of an address is there in the next cycle.
    output wire [11:0]        next_address,
    input  wire [`NC_ROW-1:0] next_row,
    output wire [11:0]        target_address,
    input  wire [`NC_ROW-1:0] target_row,
    input  wire [12:0]        program_length,

    input  wire [15:0]        flags,
    input  wire               link_up,

    // A frame that begins a round has come in this cycle; whether it is what was waited for.
    input  wire               strobe,
    output wire               strobe_taken,
    // A `sync master` is issued.
    output wire               begins_round,

    // Of the transmitter.
    input  wire               has_data,
    input  wire               may_send,
    input  wire               transmitting,
    input  wire               ethertype_sent,

    // The row that is issued next, or being carried out; what is issued of it in this cycle.
    output wire [`NC_ROW-1:0] current,
    output wire               does_create,
    output wire               does_receive,
    // An instruction may be issued in this cycle; that one compares words.
    output wire               may_issue,
    output wire               may_compare,
    // One cycle behind the issue: whether a frame of the row's message had come.
    input  wire               fresh,
    output reg                starts_data,
    output reg                starts_sync,
    output reg  [7:0]         sent_message,
    output reg  [8:0]         sent_words,
    // Two cycles behind the issue of a `branch` that compares.
    input  wire [31:0]        left_value,
    input  wire [31:0]        right_value,

    // While it halts, for so many cycles from now on no instruction is issued.
    output wire               halting,
    output wire [31:0]        halted_cycles,

    // Counted. A `sync slave` that gives up may be followed, in the same cycle, by one that gives
    // up at its issue.
    output reg                counts_timeout,
    output reg                counts_no_wait,
    output reg                counts_overrun,
    output reg                counts_trap,
    output wire               stopped,

    // For those who watch: a fetch; then what was issued a cycle ago, and what came of it.
    output wire               trace_fetch,
    output reg                trace_issue,
    output reg  [12:0]        trace_address,
    output reg  [3:0]         trace_trap,
    output reg  [2:0]         trace_outcome,
    output wire               trace_branch,
    output wire               trace_taken,
    output wire               trace_synchronised
);
    localparam READY = 3'd0, WAITING = 3'd1, HALTING = 3'd2, LISTENING = 3'd3, ANNOUNCING = 3'd4,
        STOPPED = 3'd5;

    reg [2:0] state;
    reg stalled;

    // The row at the program counter, or that it is behind the program's end: a branch's target in
    // the cycle behind its decision, and what is held otherwise.
    reg took;
    reg [`NC_ROW-1:0] held_row, branch_row;
    reg [12:0] held_pc;
    reg held_past, branch_past;
    reg [11:0] branch_address;
    wire [`NC_ROW-1:0] row = took ? branch_row : held_row;
    wire [12:0] pc = took ? {1'b0, branch_address} : held_pc;
    wire past = took ? branch_past : held_past;
    assign current = row;
    wire is_create = row[`NC_ROW_CREATE] && !past;
    wire is_send = row[`NC_ROW_SEND] && !past;
    wire is_receive = row[`NC_ROW_RECEIVE] && !past;
    wire is_future = row[`NC_ROW_FUTURE] && !past;
    wire is_halt = row[`NC_ROW_HALT] && !past;
    wire is_master = row[`NC_ROW_MASTER] && !past;
    wire is_slave = row[`NC_ROW_SLAVE] && !past;
    wire is_branch = row[`NC_ROW_BRANCH] && !past;
    wire is_nop = row[`NC_ROW_NOP] && !past;
    wire [31:0] immediate = row[`NC_ROW_IMMEDIATE];
    wire [8:0] words = row[`NC_ROW_WORDS];
    wire [7:0] id = row[`NC_ROW_ID];
    wire [4:0] condition = row[`NC_ROW_CONDITION];

    // Counts WAITING; in its last cycle `waited` is high.
    reg [9:0] wait_left;
    reg waited;
    // Counts LISTENING likewise.
    reg [31:0] listen_left;
    reg listened;

    // `countdown_over` says that it is 0.
    reg countdown_runs;
    reg [31:0] countdown;
    reg countdown_over;
    reg [`NC_ROW-1:0] future_row;
    reg [12:0] future_next, future_plus;
    reg [11:0] future_address;
    reg future_past;

    reg received, rx_fresh;
    reg sync_timeout;
    reg overrun;
    reg created;
    reg [8:0] created_words;

    // What ends in this cycle, so that an instruction may be issued in it.
    wire halt_ends = state == HALTING && countdown_over;
    wire times_out = state == LISTENING && !strobe && listened;
    assign may_issue = state == READY || halt_ends || times_out;
    assign may_compare = is_branch && condition[4]
        && (state == READY || halt_ends || (state == LISTENING && listened));

    wire countdown_there = countdown_runs && !halt_ends;
    reg [3:0] trap;
    always @* begin
        if (past) trap = `NC_TRAP_END;
        else if (row[`NC_ROW_TRAPS]) trap = row[`NC_ROW_TRAP];
        else if (is_halt && !countdown_there) trap = `NC_TRAP_NO_FUTURE;
        else if (is_send && !created) trap = `NC_TRAP_NOTHING_CREATED;
        else if (is_send && created_words != words) trap = `NC_TRAP_LENGTH;
        else trap = `NC_TRAP_NONE;
    end
    wire is_right = !past && !row[`NC_ROW_TRAPS] && (!is_halt || countdown_there)
        && (!is_send || may_be_sent);
    wire must_wait = !past && ((row[`NC_ROW_WAITS_DATA] && has_data)
        || (row[`NC_ROW_WAITS_SEND] && !may_send));
    wire issues = may_issue && !must_wait;

    // What is of a kind has no trap, but `halt` and `send` may.
    wire halts = may_issue && is_halt && countdown_there;
    wire halt_overruns = halts && countdown_over;
    wire starts_countdown = may_issue && is_future;
    wire replaces = starts_countdown && countdown_there;
    wire listens = may_issue && is_slave;
    wire listens_in_vain = listens && !strobe && row[`NC_ROW_ZERO];
    wire branches = may_issue && is_branch;
    wire may_be_sent = created && created_words == words;
    wire sends = may_issue && is_send && may_send && may_be_sent;

    assign strobe_taken = strobe && (state == LISTENING || listens);
    assign begins_round = may_issue && is_master && may_send;
    assign does_create = may_issue && is_create && !has_data;
    assign does_receive = may_issue && is_receive;
    assign stopped = state == STOPPED;
    assign halting = state == HALTING;
    assign halted_cycles = countdown;

    // A guard that looks at no buffer, counter or frame, in the cycle of its issue.
    reg simple_guard;
    always @* begin
        case (condition)
            `NC_ALWAYS: simple_guard = 1'b1;
            `NC_RECEIVED: simple_guard = rx_fresh;
            `NC_SYNC_TIMEOUT: simple_guard = sync_timeout || times_out;
            `NC_OVERRUN: simple_guard = overrun;
            `NC_FLAG: simple_guard = flags[id[3:0]];
            `NC_TRANSMITTING: simple_guard = transmitting;
            `NC_LINK_UP: simple_guard = link_up;
            default: simple_guard = 1'b0;
        endcase
    end

    // The counters of guards. Each has what it would count to next: 1 if it has not counted, which
    // a bit says, as a memory is not reset.
    reg [31:0] counts [0:15];
    reg [15:0] counts_valid;
    reg counts_now;
    reg [31:0] count;
    wire count_is_true = count >= held_row[`NC_ROW_IMMEDIATE];
    wire counts_guard = branches && condition == `NC_COUNT;
    always @(posedge clk) begin
        count <= counts_valid[id[3:0]] ? counts[id[3:0]] : 32'd1;
        if (counts_now) counts[id[3:0]] <= count_is_true ? 32'd1 : count + 32'd1;
    end

    // One and two cycles behind the issue of a `branch`, whose row is held.
    reg branched, decides;
    reg guard, decided_guard;
    wire [4:0] held_condition = held_row[`NC_ROW_CONDITION];
    // With their highest bits complemented signed numbers are in the order of unsigned ones.
    wire is_signed =
        held_condition[2:0] == `NC_LESS || held_condition[2:0] == `NC_AT_MOST;
    wire [31:0] sign = {is_signed, 31'd0};
    wire is_below = (left_value ^ sign) < (right_value ^ sign);
    wire is_equal = left_value == right_value;
    reg relation_holds;
    always @* begin
        case (held_condition[2:0])
            `NC_EQUAL: relation_holds = is_equal;
            `NC_LESS, `NC_BELOW: relation_holds = is_below;
            default: relation_holds = is_below || is_equal;
        endcase
    end
    wire takes_branch =
        (held_condition[4] ? relation_holds : decided_guard) ^ held_row[`NC_ROW_NEGATED];
    assign trace_branch = decides;
    assign trace_taken = takes_branch;

    // Rows that may be next. `next_pc` is the address of the one that is there in this cycle: one
    // port gives it, behind a jump the other one. If it is not loaded it is kept, as the port goes
    // on: so what is asked for does not depend on what is issued.
    // Each with the address behind it.
    reg [12:0] held_next_pc, held_plus, branch_next, branch_plus;
    reg jumped, is_kept;
    reg [`NC_ROW-1:0] kept_row;
    reg starts_future;
    wire [12:0] next_pc = took ? branch_next : held_next_pc;
    wire from_target = took || jumped;
    // Behind a row of the program.
    wire following_past = next_pc == program_length;
    wire [12:0] next_pc_plus = took ? branch_plus : held_plus;
    // What is loaded behind a trap is never issued.
    wire loads_future = is_halt && may_issue;
    wire loads_next = (state == WAITING && waited)
        || (may_issue && (is_nop || is_slave)) || begins_round;
    // Whether something is loaded is known late, and so is what the memory gives. What is loaded,
    // if anything, is known early. A branch's target is issued in the cycle in which it is there,
    // or waits for the transmitter: it is held then. Behind the program's end something may be
    // loaded that is not issued.
    wire held_moves = held_row[`NC_ROW_HALT] || held_row[`NC_ROW_NOP] || held_row[`NC_ROW_SLAVE]
        || (held_row[`NC_ROW_MASTER] && may_send);
    wire loads = took || (state == WAITING && waited) || (may_issue && held_moves);
    wire halts_next = row[`NC_ROW_HALT];
    wire goes_on = state == WAITING || row[`NC_ROW_NOP] || row[`NC_ROW_SLAVE]
        || (row[`NC_ROW_MASTER] && may_send);
    wire picks_target = goes_on && from_target;
    wire picks_read = goes_on && !from_target && !is_kept;
    wire [`NC_ROW-1:0] other_row = halts_next ? future_row : goes_on ? kept_row : branch_row;
    // In reset the first row is read, and with `primes` the second one.
    assign next_address = rst ? {11'd0, primes} : next_pc_plus[11:0];
    assign target_address = state == WAITING ? branch_next[11:0]
        : is_halt ? future_next[11:0] : row[`NC_ROW_ADDRESS];
    wire [12:0] behind_address = {1'b0, row[`NC_ROW_ADDRESS]} + 13'd1;
    wire address_past = {1'b0, row[`NC_ROW_ADDRESS]} >= program_length;

    always @(posedge clk) begin
        // What is asked for in the cycle of the issue is there in the next one.
        if (branched) branch_row <= target_row;
        kept_row <= from_target ? target_row : is_kept ? kept_row : next_row;
        is_kept <= !rst && !loads_next && !loads_future;
        branch_next <= behind_address;
        branch_plus <= behind_address + 13'd1;
        branch_past <= address_past;
        branch_address <= row[`NC_ROW_ADDRESS];
        if (starts_future) begin
            future_row <= target_row;
            future_past <= address_past;
        end
        if (starts_countdown) begin
            future_next <= behind_address;
            future_plus <= behind_address + 13'd1;
            future_address <= row[`NC_ROW_ADDRESS];
        end
        if (rst) begin
            took <= 1'b0;
            held_row <= next_row;
            held_pc <= 13'd0;
            held_next_pc <= 13'd1;
            held_plus <= 13'd2;
            held_past <= program_length == 13'd0;
            jumped <= 1'b0;
        end else begin
            took <= decides && takes_branch;
            if (loads) begin
                held_row <= picks_target ? target_row : picks_read ? next_row : other_row;
                held_past <= halts_next ? future_past : goes_on ? following_past : branch_past;
                held_pc <= halts_next ? {1'b0, future_address}
                    : goes_on ? next_pc : {1'b0, branch_address};
                held_next_pc <= halts_next ? future_next : goes_on ? next_pc_plus : branch_next;
                held_plus <= halts_next ? future_plus
                    : goes_on ? next_pc_plus + 13'd1 : branch_plus;
            end
            jumped <= loads_future;
        end
    end

    reg [2:0] next_state;
    always @* begin
        next_state = state;
        case (state)
            WAITING: if (waited) next_state = READY;
            LISTENING: if (strobe) next_state = READY;
            ANNOUNCING: if (ethertype_sent) next_state = READY;
            default: ;
        endcase
        if (may_issue) next_state = READY;
        if (issues) begin
            if (!is_right) next_state = STOPPED;
            else if (is_halt) next_state = countdown_over ? READY : HALTING;
            else if (is_master) next_state = ANNOUNCING;
            else if (is_slave) next_state = strobe || row[`NC_ROW_ZERO] ? READY : LISTENING;
            else if (!is_nop) next_state = WAITING;
        end
    end

    assign trace_fetch = may_issue && !stalled;
    assign trace_synchronised = strobe_taken;

    // Cycles of WAITING: what the instruction costs, but that of its issue.
    wire [9:0] wait_cycles = is_receive ? {1'b0, words} + `NC_COST_RECEIVE - 10'd1
        : is_branch ? `NC_COST_BRANCH - 10'd1
        : is_create ? `NC_COST_CREATE - 10'd1
        : is_send ? `NC_COST_SEND - 10'd1 : `NC_COST_FUTURE - 10'd1;

    always @(posedge clk) begin
        if (may_issue) begin
            wait_left <= wait_cycles;
            waited <= wait_cycles == 10'd1;
            listen_left <= immediate;
            listened <= row[`NC_ROW_ONE];
        end else begin
            wait_left <= wait_left - 10'd1;
            waited <= wait_left == 10'd2;
            listen_left <= listen_left - 32'd1;
            listened <= listen_left == 32'd2;
        end
        if (rst) begin
            state <= READY;
            stalled <= 1'b0;
            countdown_runs <= 1'b0;
            countdown <= 32'd0;
            countdown_over <= 1'b1;
            received <= 1'b0;
            rx_fresh <= 1'b0;
            sync_timeout <= 1'b0;
            overrun <= 1'b0;
            created <= 1'b0;
            counts_valid <= 16'd0;
            counts_now <= 1'b0;
            branched <= 1'b0;
            decides <= 1'b0;
            starts_future <= 1'b0;
            starts_data <= 1'b0;
            starts_sync <= 1'b0;
            trace_issue <= 1'b0;
            counts_timeout <= 1'b0;
            counts_no_wait <= 1'b0;
            counts_overrun <= 1'b0;
            counts_trap <= 1'b0;
        end else begin
            state <= next_state;
            stalled <= may_issue && must_wait;

            if (starts_countdown) begin
                countdown_runs <= 1'b1;
                countdown <= row[`NC_ROW_ZERO] ? 32'd0 : immediate - 32'd1;
                countdown_over <= row[`NC_ROW_ZERO] || row[`NC_ROW_ONE];
            end else begin
                if (halt_ends || halt_overruns) countdown_runs <= 1'b0;
                if (!countdown_over) countdown <= countdown - 32'd1;
                countdown_over <= countdown[31:1] == 31'd0;
            end
            starts_future <= starts_countdown;

            if (halt_overruns || replaces) overrun <= 1'b1;
            else if (branches && condition == `NC_OVERRUN) overrun <= 1'b0;
            counts_overrun <= halt_overruns || replaces;

            if (strobe_taken) sync_timeout <= 1'b0;
            else if (times_out || listens_in_vain) sync_timeout <= 1'b1;
            counts_timeout <= times_out;
            counts_no_wait <= listens_in_vain;

            if (does_create) created <= 1'b1;
            else if (sends) created <= 1'b0;
            received <= does_receive;
            if (received) rx_fresh <= fresh;
            counts_now <= counts_guard;
            if (counts_guard) counts_valid[id[3:0]] <= 1'b1;

            branched <= branches;
            decides <= branched;
            starts_data <= sends;
            starts_sync <= begins_round;
            trace_issue <= issues;
            counts_trap <= issues && !is_right;
        end
        // What is behind these needs no reset: what says that they count has one.
        if (does_create) created_words <= words;
        guard <= simple_guard;
        decided_guard <= held_condition == `NC_COUNT ? count_is_true
            : held_condition == `NC_FRESH ? fresh : guard;
        sent_message <= id;
        sent_words <= words;
        trace_address <= pc;
        trace_trap <= trap;
        trace_outcome <= {listens && strobe, halt_overruns, replaces};
    end
endmodule

`default_nettype wire
