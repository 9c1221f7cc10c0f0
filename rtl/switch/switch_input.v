// All that one port does with what it receives, up to the buses between ports.
//
// Timing: an octet that is on the pins in cycle r is on the stream in r + 5 (equal clocks), and on
// line_* 27 cycles later. `announce` is said in rt_bus.v, move_* in fabric.v.
`default_nettype none

module switch_input (
    input  wire        clk,
    input  wire        rst,
    // GMII
    input  wire        rx_clk,
    input  wire        rx_dv,
    input  wire        rx_er,
    input  wire [7:0]  rxd,
    // settings
    input  wire [11:0] max_length,
    input  wire [5:0]  window_number,
    input  wire        may_sync,
    input  wire        write_open,
    input  wire        write_close,
    input  wire [4:0]  write_index,
    input  wire [27:0] write_value,
    // round_counter
    input  wire        round_begins,
    input  wire        current,
    input  wire [27:0] place,
    input  wire        sync_in_time,
    // dedicated path
    output wire        announce,
    output wire        announce_sync,
    output wire [11:0] limit,
    output wire        line_dv,
    output wire        line_er,
    output wire [7:0]  line_data,
    // mac_table
    output wire        request,
    output wire [47:0] request_destination,
    output wire [47:0] request_source,
    input  wire        answer,
    input  wire [3:0]  outputs,
    // fabric
    input  wire        turn,
    output wire        move_begin,
    output wire        move_word,
    output wire        move_end,
    output wire [3:0]  move_outputs,
    output wire [10:0] move_length,
    output wire [31:0] move_data,
    // pulses for the counters
    output wire        rt_in,
    output wire        guarded,
    output wire        rt_bad_fcs,
    output wire        rt_runt,
    output wire        rt_cut,
    output wire        be_in,
    output wire        be_bad,
    output wire        be_runt,
    output wire        be_jumbo,
    output wire        be_filtered,
    output wire        be_in_full,
    output wire        bad_preamble,
    output wire        slip
);
    localparam LINE = 27;
    localparam [11:0] SHORTEST = 12'd64;
    localparam [11:0] LONGEST = 12'd1522;

    wire dv;
    wire er;
    wire [7:0] data;
    wire sof;
    wire octet_valid;
    wire [7:0] octet;
    wire [11:0] index;
    wire [47:0] destination;
    wire [47:0] source;
    wire has_tag;
    wire type_strobe;
    wire [15:0] ethertype;
    wire eof;
    wire fcs_ok;
    wire er_seen;
    wire [11:0] length;
    wire sync;
    wire pass;
    wire [11:0] pass_limit;
    wire best_effort;
    wire no_frame;
    wire express_bad;

    elastic_fifo crossing (
        .rx_clk(rx_clk), .rx_dv(rx_dv), .rx_er(rx_er), .rxd(rxd),
        .clk(clk), .rst(rst), .dv(dv), .er(er), .data(data), .slip(slip)
    );

    rx_frame frame (
        .clk(clk), .rst(rst), .dv(dv), .er(er), .data(data),
        .sof(sof), .bad_preamble(no_frame),
        .octet_valid(octet_valid), .octet(octet), .index(index),
        .destination(destination), .source(source), .has_tag(has_tag),
        .type_strobe(type_strobe), .ethertype(ethertype),
        .eof(eof), .fcs_ok(fcs_ok), .er_seen(er_seen), .length(length)
    );

    guardian guard (
        .clk(clk), .rst(rst), .number(window_number), .may_sync(may_sync),
        .max_length(max_length), .write_open(write_open), .write_close(write_close),
        .write_index(write_index), .write_value(write_value), .begins(round_begins),
        .current(current), .place(place), .sync_in_time(sync_in_time),
        .sync(sync), .pass(pass), .limit(pass_limit)
    );

    classifier kind (
        .clk(clk), .rst(rst), .sof(sof), .octet_valid(octet_valid), .index(index),
        .destination(destination), .has_tag(has_tag), .type_strobe(type_strobe),
        .ethertype(ethertype), .eof(eof), .fcs_ok(fcs_ok), .er_seen(er_seen), .length(length),
        .max_length(max_length), .sync(sync), .pass(pass), .pass_limit(pass_limit),
        .announce(announce), .announce_sync(announce_sync), .limit(limit),
        .best_effort(best_effort), .rt_in(rt_in), .guarded(guarded),
        .rt_bad_fcs(rt_bad_fcs), .rt_runt(rt_runt), .rt_cut(rt_cut),
        .be_bad(express_bad), .be_runt(be_runt), .be_jumbo(be_jumbo)
    );

    delay_line #(.WIDTH(10), .CYCLES(LINE), .ADDRESS_BITS(5)) line (
        .clk(clk), .rst(rst), .in({dv, er, data}), .out({line_dv, line_er, line_data})
    );

    // ---- preempted frames ----
    wire part_begins;
    wire part_open;
    wire part_sof;
    wire part_valid;
    wire [7:0] part_octet;
    wire part_eof;
    wire [11:0] part_length;
    wire [47:0] part_destination;
    wire [47:0] part_source;
    wire part_bad;
    wire part_fits = part_length >= SHORTEST && part_length <= LONGEST;
    // The store takes one frame at a time. A frame that comes whole between the fragments of
    // another one is lost, and the other one is forgotten, so that this cannot go on.
    reg stored;
    wire lost = best_effort && !stored;
    reg express_lost;
    reg part_wrong;
    wire store_full;

    rx_fragment fragments (
        .clk(clk), .rst(rst), .dv(dv), .er(er), .data(data), .abandon(lost),
        .fragment(part_begins), .open(part_open), .sof(part_sof), .octet_valid(part_valid),
        .octet(part_octet), .eof(part_eof), .length(part_length),
        .destination(part_destination), .source(part_source), .bad(part_bad)
    );

    assign bad_preamble = no_frame && !part_begins;
    assign be_bad = express_bad || part_bad || part_wrong;
    assign be_in_full = store_full || express_lost;

    always @(posedge clk) begin
        if (sof)
            stored <= !part_open;
        express_lost <= lost;
        part_wrong <= part_eof && !part_fits;
        if (rst) begin
            stored <= 1'b0;
            express_lost <= 1'b0;
            part_wrong <= 1'b0;
        end
    end

    be_input store (
        .clk(clk), .rst(rst),
        .sof(part_open ? part_sof : sof),
        .octet_valid(part_open ? part_valid : octet_valid && stored),
        .octet(part_open ? part_octet : octet),
        .eof(part_open ? part_eof : eof && stored),
        .length(part_open ? part_length : length),
        .destination(part_open ? part_destination : destination),
        .source(part_open ? part_source : source),
        .best_effort(part_open ? part_eof && part_fits : best_effort && stored),
        .request(request),
        .request_destination(request_destination), .request_source(request_source),
        .answer(answer), .outputs(outputs), .turn(turn),
        .move_begin(move_begin), .move_word(move_word), .move_end(move_end),
        .move_outputs(move_outputs), .move_length(move_length), .move_data(move_data),
        .be_in(be_in), .be_filtered(be_filtered), .be_in_full(store_full)
    );
endmodule

`default_nettype wire
