// A station of Network Code: the program, its buffers, and a GMII of 1 Gbit/s. All but the receive
// clock's side of the elastic FIFO is of one clock of 125 MHz, whose cycles are the station's.
//
// RECEIVE_PAD cycles are added to the way in, which makes up for a slower MAC's.
`default_nettype none
`include "nc_table.vh"
`include "nc_row.vh"

module nc_station #(
    // Words of the data buffers, and of the receive buffers: 2 to the power of this.
    parameter ADDRESS = 12,
    // Instructions: 2 to the power of this, 12 at most.
    parameter PROGRAM = 12,
    parameter BANKS = 2,
    parameter RECEIVE_PAD = 0
) (
    input  wire        clk,
    input  wire        rst,

    input  wire        rx_clk,
    input  wire        rx_dv,
    input  wire        rx_er,
    input  wire [7:0]  rxd,
    output wire [7:0]  txd,
    output wire        tx_en,
    output wire        tx_er,
    // Best effort of the station's host: see nc_best_effort. And what comes that is no frame of a
    // station, octet by octet from the destination to the check sequence; behind its last octet
    // whether it is whole. A frame that is not `best_rx_good` is to be dropped.
    input  wire        best_tx_valid,
    output wire        best_tx_ready,
    input  wire [7:0]  best_tx_octet,
    input  wire        best_tx_last,
    output wire        best_rx_valid,
    output wire [7:0]  best_rx_octet,
    output wire        best_rx_end,
    output wire        best_rx_good,
    // Of the interface's chip, in any clock.
    input  wire        link_status,

    input  wire [23:0] bus_address,
    input  wire [31:0] bus_write_data,
    input  wire        bus_write,
    input  wire        bus_read,
    output wire [31:0] bus_read_data,
    output wire        bus_ready,

    // For those who watch. What is said of an issue is said one cycle later, of what a `branch`
    // decides two cycles later.
    output wire        trace_runs,
    output wire        trace_fetch,
    output wire        trace_issue,
    output wire [12:0] trace_address,
    output wire [3:0]  trace_trap,
    output wire [2:0]  trace_outcome,
    output wire        trace_receive,
    output wire        trace_branch,
    output wire        trace_taken,
    output wire        trace_synchronised,
    // A frame that begins a round has come; a buffer of the application is complete from the next
    // cycle on; a word of a frame has been stored, and it was the frame's last one.
    // An access to a buffer is not possible.
    output wire        trace_strobe,
    output wire        trace_committed,
    output wire        trace_refused,
    output wire        trace_stored,
    output wire        trace_stored_last
);
    reg [1:0] link_synchronised;
    always @(posedge clk) link_synchronised <= {link_synchronised[0], link_status};
    wire link_up = link_synchronised[1];

    wire [23:0] address;
    wire [31:0] write_data, read_data;
    wire write, read, ready;
    nc_bus bus (
        .clk(clk), .rst(rst), .bus_address(bus_address), .bus_write_data(bus_write_data),
        .bus_write(bus_write), .bus_read(bus_read), .bus_read_data(bus_read_data),
        .bus_ready(bus_ready), .address(address), .write_data(write_data), .write(write),
        .read(read), .read_data(read_data), .ready(ready)
    );

    wire runs, primes, has_tag;
    wire [47:0] own_address;
    wire [12:0] program_length;
    wire [8:0] buffers;
    wire [15:0] flags;
    wire load_program, load_buffer_row, load_message_row, load_word, resolved;
    wire [31:0] program_high;
    wire reads_buffer, writes_buffer, commits_buffer, buffer_ready, buffer_refused;
    wire [31:0] buffer_value;
    wire stopped, counts_trap;
    wire [18:0] counts;
    wire counts_no_wait;
    nc_registers #(.PROGRAM(PROGRAM)) registers (
        .clk(clk), .rst(rst), .address(address), .write_data(write_data),
        .write(write), .read(read), .read_data(read_data), .ready(ready),
        .runs(runs), .primes(primes), .has_tag(has_tag), .source(own_address),
        .program_length(program_length), .buffers(buffers), .flags(flags),
        .load_program(load_program), .program_high(program_high), .program_done(resolved),
        .load_buffer_row(load_buffer_row), .load_message_row(load_message_row),
        .load_word(load_word), .reads_buffer(reads_buffer), .writes_buffer(writes_buffer),
        .commits_buffer(commits_buffer), .buffer_ready(buffer_ready),
        .buffer_refused(buffer_refused), .buffer_value(buffer_value), .link_up(link_up),
        .stopped(stopped), .trap(trace_trap), .trap_address(trace_address),
        .counts_trap(counts_trap), .counts(counts), .counts_no_wait(counts_no_wait)
    );
    wire core_rst = !runs;
    assign trace_runs = runs;

    // What identifiers mean: asked for while a program is loaded, and by the application.
    wire [7:0] resolved_buffer, resolved_message;
    wire [7:0] wanted_buffer = address[20] ? address[16:9] : address[7:0];
    reg [7:0] asked_buffer, asked_message;
    wire [21:0] buffer_read, message_read;
    reg [21:0] buffer_row, message_row;
    reg buffer_asked, buffer_known;
    nc_memory #(.WIDTH(22), .ADDRESS(8)) table_of_buffers (
        .clk(clk), .write(load_buffer_row), .write_address(address[7:0]),
        .write_data(write_data[21:0]), .read_address(asked_buffer), .read_data(buffer_read)
    );
    nc_memory #(.WIDTH(22), .ADDRESS(8)) table_of_messages (
        .clk(clk), .write(load_message_row), .write_address(address[7:0]),
        .write_data(write_data[21:0]), .read_address(asked_message),
        .read_data(message_read)
    );
    always @(posedge clk) begin
        asked_buffer <= load_program ? resolved_buffer : wanted_buffer;
        asked_message <= resolved_message;
        buffer_row <= buffer_read;
        message_row <= message_read;
        buffer_asked <= {1'b0, asked_buffer} < buffers;
        buffer_known <= buffer_asked;
    end
    wire [`NC_ROW-1:0] resolved_row;
    nc_resolve resolve (
        .clk(clk), .rst(rst), .load(load_program), .word({program_high, write_data}),
        .done(resolved), .buffer(resolved_buffer), .buffer_known(buffer_known),
        .buffer_row(buffer_row), .message(resolved_message), .message_row(message_row),
        .row(resolved_row)
    );

    wire [11:0] next_address, target_address;
    wire [`NC_ROW-1:0] next_row, target_row;
    nc_program #(.ADDRESS(PROGRAM)) instructions (
        .clk(clk), .write(resolved), .write_address(address[12:1]),
        .write_row(resolved_row), .next_address(next_address), .next_row(next_row),
        .target_address(target_address), .target_row(target_row)
    );

    // The way in.
    wire stream_dv, stream_er, slip;
    wire [7:0] stream_data;
    elastic_fifo elastic (
        .rx_clk(rx_clk), .rx_dv(rx_dv), .rx_er(rx_er), .rxd(rxd), .clk(clk), .rst(rst),
        .dv(stream_dv), .er(stream_er), .data(stream_data), .slip(slip)
    );
    wire padded_dv, padded_er;
    wire [7:0] padded_data;
    nc_pad #(.CYCLES(RECEIVE_PAD)) pad (
        .clk(clk), .rst(rst), .dv(stream_dv), .er(stream_er), .data(stream_data),
        .late_dv(padded_dv), .late_er(padded_er), .late_data(padded_data)
    );
    wire sof, octet_valid, frame_has_tag, type_strobe, eof, fcs_ok, er_seen, bad_preamble;
    wire [7:0] octet;
    wire [11:0] index, frame_length;
    wire [47:0] destination, source;
    rx_frame frame (
        .clk(clk), .rst(rst), .dv(padded_dv), .er(padded_er), .data(padded_data), .sof(sof),
        .octet_valid(octet_valid), .octet(octet), .index(index), .destination(destination),
        .source(source), .has_tag(frame_has_tag), .type_strobe(type_strobe),
        // The receiver has it of the octets.
        // verilator lint_off PINCONNECTEMPTY
        .ethertype(),
        // verilator lint_on PINCONNECTEMPTY
        .eof(eof), .fcs_ok(fcs_ok), .er_seen(er_seen), .length(frame_length),
        .bad_preamble(bad_preamble)
    );

    wire strobe, strobe_taken, begins_round;
    wire [`NC_ROW-1:0] current;
    wire may_issue, may_compare, does_create, does_receive, fresh, starts_data, starts_sync;
    wire [7:0] sent_message;
    wire [8:0] sent_words;
    wire halting;
    wire [31:0] left_value, right_value, halted_cycles;
    wire has_data, may_send, transmitting, ethertype_sent;
    wire counts_timeout, counts_overrun;
    nc_core core (
        .clk(clk), .rst(core_rst), .primes(primes), .next_address(next_address),
        .next_row(next_row), .target_address(target_address), .target_row(target_row),
        .program_length(program_length), .flags(flags), .link_up(link_up), .strobe(strobe),
        .strobe_taken(strobe_taken), .begins_round(begins_round), .has_data(has_data),
        .may_send(may_send), .transmitting(transmitting), .ethertype_sent(ethertype_sent),
        .current(current), .does_create(does_create), .does_receive(does_receive),
        .may_issue(may_issue), .may_compare(may_compare), .fresh(fresh),
        .starts_data(starts_data), .starts_sync(starts_sync), .sent_message(sent_message),
        .sent_words(sent_words), .left_value(left_value), .right_value(right_value),
        .halting(halting), .halted_cycles(halted_cycles), .counts_timeout(counts_timeout),
        .counts_no_wait(counts_no_wait), .counts_overrun(counts_overrun),
        .counts_trap(counts_trap), .stopped(stopped), .trace_fetch(trace_fetch),
        .trace_issue(trace_issue), .trace_address(trace_address), .trace_trap(trace_trap),
        .trace_outcome(trace_outcome), .trace_branch(trace_branch), .trace_taken(trace_taken),
        .trace_synchronised(trace_synchronised)
    );
    reg received;
    always @(posedge clk) received <= does_receive && !core_rst;
    assign trace_receive = received && fresh;
    assign trace_strobe = strobe;
    assign trace_refused = buffer_refused;

    wire [31:0] round;
    wire counts_seen, counts_discarded, counts_second;
    nc_rounds rounds (
        .clk(clk), .rst(core_rst), .strobe(strobe), .strobe_taken(strobe_taken), .source(source),
        .begins_round(begins_round), .round(round), .counts_seen(counts_seen),
        .counts_discarded(counts_discarded), .counts_second(counts_second)
    );

    wire copies, copy_ends;
    wire [31:0] copied_word;
    wire counts_received, counts_overwritten, counts_unknown, counts_wrong_length, counts_damaged;
    wire counts_malformed, counts_runt, counts_long, is_other;
    nc_receiver #(.ADDRESS(ADDRESS), .BANKS(BANKS)) receiver (
        .clk(clk), .rst(core_rst), .load_row(load_message_row), .load_message(address[7:0]),
        .load_value(write_data[21:0]), .octet_valid(octet_valid), .octet(octet),
        .index(index), .destination(destination), .has_tag(frame_has_tag),
        .type_strobe(type_strobe), .dv(padded_dv), .data(padded_data), .sof(sof), .eof(eof),
        .fcs_ok(fcs_ok), .er_seen(er_seen), .length(frame_length), .is_other(is_other),
        .strobe(strobe), .current(current), .may_issue(may_issue), .does_receive(does_receive),
        .fresh(fresh), .copies(copies), .copy_ends(copy_ends),
        .copied_word(copied_word), .counts_received(counts_received),
        .counts_overwritten(counts_overwritten), .counts_unknown(counts_unknown),
        .counts_wrong_length(counts_wrong_length), .counts_damaged(counts_damaged),
        .counts_malformed(counts_malformed), .counts_runt(counts_runt),
        .counts_long(counts_long), .trace_stored(trace_stored),
        .trace_stored_last(trace_stored_last)
    );

    assign best_rx_valid = octet_valid;
    assign best_rx_octet = octet;
    assign best_rx_end = eof;
    assign best_rx_good = is_other;

    wire best_there, best_sent;
    wire [10:0] best_length, best_index;
    wire [7:0] best_octet;
    nc_best_effort best_effort (
        .clk(clk), .rst(rst), .valid(best_tx_valid), .ready(best_tx_ready),
        .octet(best_tx_octet), .last(best_tx_last), .there(best_there), .length(best_length),
        .sent(best_sent), .index(best_index), .read_octet(best_octet)
    );

    wire [8:0] word_index;
    wire [31:0] send_word;
    nc_buffers #(.ADDRESS(ADDRESS)) data (
        .clk(clk), .rst(core_rst), .load_word(load_word),
        .load_address(address[ADDRESS-1:0]), .current(current), .may_compare(may_compare),
        .does_create(does_create), .left_value(left_value), .right_value(right_value),
        .word_index(word_index), .word(send_word), .does_receive(does_receive),
        .copies_nothing(received && !fresh), .copies(copies), .copy_ends(copy_ends),
        .copied_word(copied_word), .reads(reads_buffer), .writes(writes_buffer),
        .commits(commits_buffer), .wanted_buffer(wanted_buffer), .wanted_index(address[8:0]),
        .written_value(write_data), .wanted_known(buffer_known), .wanted_row(buffer_row),
        .ready(buffer_ready), .refused(buffer_refused), .committed(trace_committed),
        .read_value(buffer_value)
    );

    nc_transmitter transmitter (
        .clk(clk), .rst(core_rst), .source(own_address), .has_tag(has_tag),
        .starts_data(starts_data), .starts_sync(starts_sync), .message(sent_message),
        .words(sent_words), .round(round), .word_index(word_index), .word(send_word),
        .best_there(best_there), .best_length(best_length), .best_octet(best_octet),
        .halting(halting), .halted_cycles(halted_cycles), .stopped(stopped),
        .best_index(best_index), .best_sent(best_sent), .has_data(has_data),
        .may_send(may_send), .busy(transmitting), .ethertype_sent(ethertype_sent), .txd(txd),
        .tx_en(tx_en)
    );
    assign tx_er = 1'b0;

    assign counts = {
        best_sent, bad_preamble, slip, counts_long, counts_runt, counts_malformed, counts_trap,
        counts_overrun, counts_timeout, counts_second, counts_discarded, counts_damaged,
        counts_overwritten, counts_wrong_length, counts_unknown, counts_received, starts_data,
        counts_seen, starts_sync
    };
endmodule

`default_nettype wire
