// The control of a station: fetches, issues, waits.
//
// An instruction is issued in the cycle c in which its word is there and it need not wait; what
// guards and `receive` look at is looked at then. Tables and buffers are memories that answer one
// cycle later, so what depends on them is decided in c + 1 (which traps), and in c + 2 (guards that
// compare words). No instruction that needs them lets the next one be issued before that.
`default_nettype none
`include "nc_table.vh"

module nc_core (
    input  wire        clk,
    input  wire        rst,

    // Program memory: the word of an address is there in the next cycle.
    output wire [11:0] program_address,
    input  wire [63:0] word,
    input  wire [12:0] program_length,

    input  wire [15:0] flags,
    input  wire        link_up,

    // A frame that begins a round has come in this cycle; whether it is what was waited for.
    input  wire        strobe,
    output wire        strobe_taken,
    // A `sync master` is issued.
    output wire        begins_round,

    // Of the transmitter.
    input  wire        has_data,
    input  wire        may_send,
    input  wire        transmitting,
    input  wire        ethertype_sent,

    // Identifiers of the word. What they mean is there in the next cycle.
    output wire [7:0]  left_buffer,
    output wire [7:0]  right_buffer,
    output wire [7:0]  message,
    input  wire        left_known,
    input  wire        left_is_input,
    input  wire [8:0]  left_words,
    input  wire        right_known,
    input  wire [8:0]  right_words,
    input  wire        message_known,
    input  wire [8:0]  message_words,
    // Whether a frame of the message has come; in this cycle.
    input  wire        fresh,

    // In the cycle behind the issue, for who carries it out; the tables' answers are of the same.
    output wire        does_create,
    output wire        does_receive,
    output wire        starts_data,
    output reg         starts_sync,
    output reg  [7:0]  issued_message,
    // With `does_receive`: whether there is a frame to copy.
    output reg         issued_fresh,

    // In the cycle behind the issue of a `branch`: the words to compare, by their index. Their
    // values are there in the next cycle.
    output wire [7:0]  left_index,
    output wire [7:0]  right_index,
    output wire        compares,
    input  wire [31:0] left_value,
    input  wire [31:0] right_value,

    // For so many cycles from now on no instruction is issued.
    output wire [31:0] idle_cycles,

    // Counted. A `sync slave` that gives up may be followed, in the same cycle, by one that gives
    // up at its issue.
    output reg         counts_timeout,
    output reg         counts_no_wait,
    output reg         counts_overrun,
    output wire        counts_trap,
    output wire        stopped,

    // For those who watch: a fetch; then what was issued a cycle ago, and what came of it.
    output wire        trace_fetch,
    output reg         trace_issue,
    output reg  [12:0] trace_address,
    output wire [3:0]  trace_trap,
    output reg  [2:0]  trace_outcome,
    output wire        trace_branch,
    output wire        trace_taken,
    output wire        trace_synchronised
);
    localparam READY = 3'd0, WAITING = 3'd1, HALTING = 3'd2, LISTENING = 3'd3, ANNOUNCING = 3'd4,
        STOPPED = 3'd5;

    reg [2:0] state;
    reg [12:0] pc;
    // Of WAITING and LISTENING: cycles that are left, this one too.
    reg [31:0] left;
    reg stalled;

    reg countdown_runs;
    reg [31:0] countdown;
    reg [11:0] countdown_target;

    reg rx_fresh;
    reg sync_timeout;
    reg overrun;
    reg created;
    reg [8:0] created_words;

    wire [5:0] operation;
    wire [11:0] address;
    wire [7:0] id;
    wire master, negated;
    wire [4:0] condition;
    wire [31:0] immediate;
    wire [3:0] word_error;
    nc_decode decode (
        .word(word), .operation(operation), .address(address), .id(id), .master(master),
        .negated(negated), .condition(condition), .immediate(immediate), .error(word_error)
    );

    // What ends in this cycle, so that an instruction may be issued in it.
    wire halt_ends = state == HALTING && countdown == 32'd0;
    wire times_out = state == LISTENING && !strobe && left == 32'd1;
    wire may_issue = state == READY || halt_ends || times_out;

    wire is_end = pc >= program_length;
    wire [3:0] fetch_error = is_end ? `NC_TRAP_END : word_error;
    wire is_good = fetch_error == `NC_TRAP_NONE;
    wire is_master = operation == `NC_SYNC && master;
    wire is_slave = operation == `NC_SYNC && !master;
    wire must_wait = is_good && ((operation == `NC_CREATE && has_data)
        || ((operation == `NC_SEND || is_master) && !may_send));
    wire issues = may_issue && !must_wait;
    wire carries_out = issues && is_good;

    wire countdown_there = countdown_runs && !halt_ends;
    wire halts = carries_out && operation == `NC_HALT;
    wire halt_traps = halts && !countdown_there;
    wire halt_overruns = halts && countdown_there && countdown == 32'd0;
    wire replaces = carries_out && operation == `NC_FUTURE && countdown_there;
    wire listens = carries_out && is_slave;
    wire listens_in_vain = listens && !strobe && immediate == 32'd0;

    assign idle_cycles =
        state == STOPPED ? 32'hffffffff : state == HALTING ? countdown : 32'd0;
    assign strobe_taken = strobe && (state == LISTENING || listens);
    assign begins_round = carries_out && is_master;

    assign left_buffer = operation == `NC_RECEIVE ? immediate[7:0] : id;
    assign right_buffer = immediate[15:8];
    assign message = id;

    // A guard that looks at no buffer and no counter, in the cycle of its issue.
    reg simple_guard;
    always @* begin
        case (condition)
            `NC_ALWAYS: simple_guard = 1'b1;
            `NC_FRESH: simple_guard = fresh;
            `NC_RECEIVED: simple_guard = rx_fresh;
            `NC_SYNC_TIMEOUT: simple_guard = sync_timeout || times_out;
            `NC_OVERRUN: simple_guard = overrun;
            `NC_FLAG: simple_guard = flags[id[3:0]];
            `NC_TRANSMITTING: simple_guard = transmitting;
            `NC_LINK_UP: simple_guard = link_up;
            default: simple_guard = 1'b0;
        endcase
    end

    // The instruction that was issued a cycle ago.
    reg issued;
    reg [5:0] issued_operation;
    reg [4:0] issued_condition;
    reg [3:0] issued_id;
    reg issued_negated;
    reg [31:0] issued_immediate;
    reg [11:0] issued_address;
    reg issued_guard;
    reg [3:0] issued_trap;

    wire compares_words = issued_condition[4:3] == 2'b11;
    assign compares = issued && issued_operation == `NC_BRANCH && issued_condition[4];
    assign left_index = issued_immediate[31:24];
    assign right_index = issued_immediate[7:0];

    // Traps that tables show; of several the first in the definition's order.
    reg [3:0] table_trap;
    always @* begin
        table_trap = `NC_TRAP_NONE;
        case (issued_operation)
            `NC_CREATE:
                if (!left_known) table_trap = `NC_TRAP_BUFFER;
            `NC_SEND:
                if (!message_known) table_trap = `NC_TRAP_MESSAGE;
                else if (!created) table_trap = `NC_TRAP_NOTHING_CREATED;
                else if (created_words != message_words) table_trap = `NC_TRAP_LENGTH;
            `NC_RECEIVE:
                if (!message_known) table_trap = `NC_TRAP_MESSAGE;
                else if (!left_known || !left_is_input) table_trap = `NC_TRAP_BUFFER;
                else if (left_words != message_words) table_trap = `NC_TRAP_LENGTH;
            `NC_BRANCH:
                if (issued_condition == `NC_FRESH) begin
                    if (!message_known) table_trap = `NC_TRAP_MESSAGE;
                end else if (issued_condition[4]) begin
                    if (!left_known) table_trap = `NC_TRAP_BUFFER;
                    else if ({1'b0, left_index} >= left_words) table_trap = `NC_TRAP_INDEX;
                    else if (compares_words && !right_known) table_trap = `NC_TRAP_BUFFER;
                    else if (compares_words && {1'b0, right_index} >= right_words)
                        table_trap = `NC_TRAP_INDEX;
                end
            default: ;
        endcase
    end
    assign trace_trap = issued_trap != `NC_TRAP_NONE ? issued_trap : table_trap;
    wire traps = issued && trace_trap != `NC_TRAP_NONE;
    wire is_right = issued && trace_trap == `NC_TRAP_NONE;

    assign does_create = is_right && issued_operation == `NC_CREATE;
    assign does_receive = is_right && issued_operation == `NC_RECEIVE;
    assign starts_data = is_right && issued_operation == `NC_SEND;
    assign counts_trap = traps;
    assign stopped = state == STOPPED;

    // The counters of guards. A memory is not reset: a bit says which of them have counted.
    reg [31:0] counts [0:15];
    reg [15:0] counts_valid;
    wire does_count = is_right && issued_operation == `NC_BRANCH && issued_condition == `NC_COUNT;
    wire [31:0] count_before = counts_valid[issued_id] ? counts[issued_id] : 32'd0;
    wire [32:0] count_now = {1'b0, count_before} + 33'd1;
    wire count_is_true = count_now >= {1'b0, issued_immediate};
    always @(posedge clk) begin
        if (does_count) counts[issued_id] <= count_is_true ? 32'd0 : count_now[31:0];
    end

    // Two cycles behind the issue of a `branch`.
    reg decides;
    reg [2:0] decided_relation;
    reg decided_compares;
    reg decided_with_words;
    reg decided_negated;
    reg decided_guard;
    reg [31:0] decided_immediate;
    reg [11:0] decided_address;
    wire [31:0] right_operand = decided_with_words ? right_value : decided_immediate;
    wire is_less = $signed(left_value) < $signed(right_operand);
    wire is_below = left_value < right_operand;
    wire is_equal = left_value == right_operand;
    reg relation_holds;
    always @* begin
        case (decided_relation)
            `NC_EQUAL: relation_holds = is_equal;
            `NC_LESS: relation_holds = is_less;
            `NC_AT_MOST: relation_holds = is_less || is_equal;
            `NC_BELOW: relation_holds = is_below;
            default: relation_holds = is_below || is_equal;
        endcase
    end
    wire takes_branch = (decided_compares ? relation_holds : decided_guard) ^ decided_negated;
    assign trace_branch = decides;
    assign trace_taken = takes_branch;

    // Of a `receive` the cycles are known when its message is.
    wire [31:0] waiting_left =
        issued && issued_operation == `NC_RECEIVE
            ? {23'd0, message_words} + `NC_COST_RECEIVE - 32'd1 : left;

    reg [2:0] next_state;
    reg [12:0] next_pc;
    reg [31:0] next_left;
    always @* begin
        next_state = state;
        next_pc = pc;
        next_left = left;
        case (state)
            WAITING: begin
                next_left = waiting_left - 32'd1;
                if (waiting_left == 32'd1) next_state = READY;
                if (decides) next_pc = takes_branch ? {1'b0, decided_address} : pc + 13'd1;
            end
            LISTENING: begin
                next_left = left - 32'd1;
                if (strobe) next_state = READY;
            end
            ANNOUNCING: if (ethertype_sent) next_state = READY;
            default: ;
        endcase
        if (may_issue) next_state = READY;
        if (carries_out) begin
            next_pc = pc + 13'd1;
            case (operation)
                `NC_CREATE: begin
                    next_state = WAITING;
                    next_left = `NC_COST_CREATE - 32'd1;
                end
                `NC_SEND: begin
                    next_state = WAITING;
                    next_left = `NC_COST_SEND - 32'd1;
                end
                `NC_FUTURE: begin
                    next_state = WAITING;
                    next_left = `NC_COST_FUTURE - 32'd1;
                end
                `NC_RECEIVE: next_state = WAITING;
                `NC_BRANCH: begin
                    next_pc = pc;
                    next_state = WAITING;
                    next_left = `NC_COST_BRANCH - 32'd1;
                end
                `NC_HALT: begin
                    next_pc = {1'b0, countdown_target};
                    if (countdown != 32'd0) next_state = HALTING;
                end
                `NC_SYNC: begin
                    next_left = immediate;
                    if (master) next_state = ANNOUNCING;
                    else if (!strobe && immediate != 32'd0) next_state = LISTENING;
                end
                default: ;
            endcase
        end
        if (issues && (!is_good || halt_traps) || traps) next_state = STOPPED;
    end
    // In reset the first word is fetched already.
    assign program_address = rst ? 12'd0 : next_pc[11:0];

    assign trace_fetch = may_issue && !stalled;
    assign trace_synchronised = strobe_taken;

    always @(posedge clk) begin
        if (rst) begin
            state <= READY;
            pc <= 13'd0;
            left <= 32'd0;
            stalled <= 1'b0;
            countdown_runs <= 1'b0;
            countdown <= 32'd0;
            rx_fresh <= 1'b0;
            sync_timeout <= 1'b0;
            overrun <= 1'b0;
            created <= 1'b0;
            counts_valid <= 16'd0;
            issued <= 1'b0;
            decides <= 1'b0;
            starts_sync <= 1'b0;
            trace_issue <= 1'b0;
            counts_timeout <= 1'b0;
            counts_no_wait <= 1'b0;
            counts_overrun <= 1'b0;
        end else begin
            state <= next_state;
            pc <= next_pc;
            left <= next_left;
            stalled <= may_issue && must_wait;

            if (carries_out && operation == `NC_FUTURE) begin
                countdown_runs <= 1'b1;
                countdown <= immediate == 32'd0 ? 32'd0 : immediate - 32'd1;
            end else begin
                if (halt_ends || halt_overruns) countdown_runs <= 1'b0;
                if (countdown != 32'd0) countdown <= countdown - 32'd1;
            end

            if (halt_overruns || replaces) overrun <= 1'b1;
            else if (carries_out && operation == `NC_BRANCH && condition == `NC_OVERRUN)
                overrun <= 1'b0;
            counts_overrun <= halt_overruns || replaces;

            if (strobe_taken) sync_timeout <= 1'b0;
            else if (times_out || listens_in_vain) sync_timeout <= 1'b1;
            counts_timeout <= times_out;
            counts_no_wait <= listens_in_vain;

            if (does_create) created <= 1'b1;
            else if (starts_data) created <= 1'b0;
            if (does_receive) rx_fresh <= issued_fresh;
            if (does_count) counts_valid[issued_id] <= 1'b1;

            issued <= issues;
            decides <= is_right && issued_operation == `NC_BRANCH;
            starts_sync <= begins_round;
            trace_issue <= issues;
        end
        // What is behind these needs no reset: what says that they count has one.
        if (carries_out && operation == `NC_FUTURE) countdown_target <= address;
        if (does_create) created_words <= left_words;
        issued_operation <= operation;
        issued_condition <= condition;
        issued_id <= id[3:0];
        issued_message <= id;
        issued_negated <= negated;
        issued_immediate <= immediate;
        issued_address <= address;
        issued_guard <= simple_guard;
        issued_fresh <= fresh;
        issued_trap <= is_good ? (halt_traps ? `NC_TRAP_NO_FUTURE : `NC_TRAP_NONE) : fetch_error;
        trace_address <= pc;
        trace_outcome <= {listens && strobe, halt_overruns, replaces};
        decided_relation <= issued_condition[2:0];
        decided_compares <= issued_condition[4];
        decided_with_words <= compares_words;
        decided_negated <= issued_negated;
        decided_guard <= issued_condition == `NC_COUNT ? count_is_true : issued_guard;
        decided_immediate <= {{8{issued_immediate[23]}}, issued_immediate[23:0]};
        decided_address <= issued_address;
    end
endmodule

`default_nettype wire
