// A switch of four ports with a dedicated path for the frames of Network Code.
//
// Timing: if the SFD of a real-time frame is on the received stream of its port in cycle q, it is
// on the GMII pins of all other ports in cycle q + D, D = 41 + WAIT, and all octets behind it
// likewise. The stream is 5 cycles behind the pins with equal clocks, 4 to 6 with others: from pin
// to pin it takes 46 + WAIT. That does not depend on length, tag, or best effort, except under the
// policy FINISH, where a frame in transmission ends first.
//
// D is the least that lets a port which sends best effort end that in order when the EtherType
// behind a tag is known: 20 cycles to classify, 1 to the pins, 1 octet with TX_ER, 12 of gap,
// 7 of preamble.
//
// Vectors hold port 0 in their least significant bits.
`default_nettype none

module atacama_switch #(
    parameter WAIT = 0,           // cycles, at most 2000: added to the latency of real-time frames
    parameter RING_BITS = 12,     // words of each output's best-effort ring: 2**RING_BITS
    parameter AGEING = 12207031   // see mac_table.v
) (
    input  wire        clk,
    input  wire        rst,
    // GMII
    input  wire [3:0]  rx_clk,
    input  wire [3:0]  rx_dv,
    input  wire [3:0]  rx_er,
    input  wire [31:0] rxd,
    output wire [3:0]  tx_en,
    output wire [3:0]  tx_er,
    output wire [31:0] txd,
    input  wire [3:0]  link_up,
    // register bus
    input  wire [23:0] address,
    input  wire [31:0] write_data,
    input  wire        write,
    input  wire        read,
    output wire [31:0] read_data,
    output wire        ready
);
    localparam COUNT = 22;
    // From the bus, where the preamble begins in q + 21, to the registers of the pins.
    localparam BUS_CYCLES = 12 + WAIT;
    localparam BUS_BITS = BUS_CYCLES <= 32 ? 5 : BUS_CYCLES <= 256 ? 8 : 11;

    wire [1:0]   policy;
    wire [11:0]  max_length;
    wire [23:0]  window_number;
    wire [3:0]   sync_ports;
    wire [27:0]  round_least;
    wire [27:0]  round_limit;
    wire [3:0]   write_open;
    wire [3:0]   write_close;
    wire [4:0]   write_index;
    wire [27:0]  write_value;
    wire [4:0]   counter;
    wire [127:0] counter_value;

    wire         current;
    wire [27:0]  place;
    wire         synchronised;
    wire         sync_in_time;

    wire [3:0]   announce;
    wire [3:0]   announce_sync;
    wire [47:0]  limits;
    wire [3:0]   line_dv;
    wire [3:0]   line_er;
    wire [31:0]  line_data;
    wire [3:0]   grant;
    wire [3:0]   collision;
    wire         bus_valid;
    wire         bus_er;
    wire [7:0]   bus_data;
    wire [1:0]   bus_owner;
    wire         rt_valid;
    wire         rt_er;
    wire [7:0]   rt_data;
    wire [1:0]   rt_owner;

    wire [3:0]   request;
    wire [191:0] request_destinations;
    wire [191:0] request_sources;
    wire [3:0]   answer;
    wire [3:0]   outputs;

    wire [3:0]   turn;
    wire [3:0]   input_begin;
    wire [3:0]   input_word;
    wire [3:0]   input_end;
    wire [15:0]  input_outputs;
    wire [43:0]  input_length;
    wire [127:0] input_data;
    wire [1:0]   move_from;
    wire [3:0]   move_begin;
    wire         move_word;
    wire         move_end;
    wire [10:0]  move_length;
    wire [31:0]  move_data;

    rt_bus bus (
        .clk(clk), .rst(rst), .announce(announce), .limits(limits),
        .line_dv(line_dv), .line_er(line_er), .line_data(line_data),
        .grant(grant), .collision(collision),
        .valid(bus_valid), .er(bus_er), .data(bus_data), .owner(bus_owner)
    );

    wire round_begins = (grant & announce_sync) != 4'd0;

    round_counter rounds (
        .clk(clk), .rst(rst), .begins(round_begins), .least(round_least), .limit(round_limit),
        .place(place), .current(current), .synchronised(synchronised),
        .sync_in_time(sync_in_time)
    );

    delay_line #(.WIDTH(12), .CYCLES(BUS_CYCLES), .ADDRESS_BITS(BUS_BITS)) hold (
        .clk(clk), .rst(rst), .in({bus_valid, bus_er, bus_owner, bus_data}),
        .out({rt_valid, rt_er, rt_owner, rt_data})
    );

    mac_table #(.AGEING(AGEING)) addresses (
        .clk(clk), .rst(rst), .request(request), .destinations(request_destinations),
        .sources(request_sources), .answer(answer), .outputs(outputs)
    );

    fabric move (
        .clk(clk), .rst(rst), .turn(turn),
        .input_begin(input_begin), .input_word(input_word), .input_end(input_end),
        .input_outputs(input_outputs), .input_length(input_length), .input_data(input_data),
        .from(move_from), .move_begin(move_begin), .move_word(move_word),
        .move_end(move_end), .move_length(move_length), .move_data(move_data)
    );

    switch_registers #(.LATENCY(41 + WAIT)) registers (
        .clk(clk), .rst(rst), .address(address), .write_data(write_data), .write(write),
        .read(read), .read_data(read_data), .ready(ready), .policy(policy),
        .max_length(max_length), .sync_ports(sync_ports), .round_least(round_least),
        .round_limit(round_limit), .synchronised(synchronised), .window_number(window_number),
        .write_open(write_open), .write_close(write_close), .write_index(write_index),
        .write_value(write_value), .link_up(link_up),
        .counter(counter), .counter_value(counter_value)
    );

    genvar port;
    generate
        for (port = 0; port < 4; port = port + 1) begin : ports
            localparam [1:0] PORT = port;
            wire [COUNT-1:0] events;
            wire        be_ready;
            wire [10:0] be_length;
            wire [31:0] be_word;
            wire        be_advance;
            wire        be_rewind;
            wire        be_pop;

            switch_input receiver (
                .clk(clk), .rst(rst), .rx_clk(rx_clk[port]), .rx_dv(rx_dv[port]),
                .rx_er(rx_er[port]), .rxd(rxd[8*port +: 8]), .max_length(max_length),
                .window_number(window_number[6*port +: 6]), .may_sync(sync_ports[port]),
                .write_open(write_open[port]), .write_close(write_close[port]),
                .write_index(write_index), .write_value(write_value),
                .round_begins(round_begins), .current(current), .place(place),
                .sync_in_time(sync_in_time), .announce(announce[port]),
                .announce_sync(announce_sync[port]), .limit(limits[12*port +: 12]),
                .line_dv(line_dv[port]), .line_er(line_er[port]),
                .line_data(line_data[8*port +: 8]), .request(request[port]),
                .request_destination(request_destinations[48*port +: 48]),
                .request_source(request_sources[48*port +: 48]),
                .answer(answer[port]), .outputs(outputs), .turn(turn[port]),
                .move_begin(input_begin[port]), .move_word(input_word[port]),
                .move_end(input_end[port]), .move_outputs(input_outputs[4*port +: 4]),
                .move_length(input_length[11*port +: 11]),
                .move_data(input_data[32*port +: 32]),
                .rt_in(events[0]), .rt_bad_fcs(events[2]), .rt_runt(events[3]),
                .rt_cut(events[4]), .guarded(events[6]), .be_in(events[7]),
                .be_bad(events[9]), .be_runt(events[10]), .be_jumbo(events[11]),
                .slip(events[16]), .bad_preamble(events[17]), .be_filtered(events[18]),
                .be_in_full(events[19])
            );

            output_ring #(.ADDRESS_BITS(RING_BITS)) ring (
                .clk(clk), .rst(rst), .from(move_from), .move_begin(move_begin[port]),
                .move_word(move_word), .move_end(move_end), .move_length(move_length),
                .move_data(move_data), .ready(be_ready), .length(be_length), .word(be_word),
                .advance(be_advance), .rewind(be_rewind), .pop(be_pop), .be_full(events[12])
            );

            port_tx #(.WAIT(WAIT)) transmitter (
                .clk(clk), .rst(rst), .policy(policy),
                .warn(grant != 4'd0 && !grant[port]),
                .rt_valid(rt_valid && rt_owner != PORT), .rt_er(rt_er), .rt_data(rt_data),
                .be_ready(be_ready), .be_length(be_length), .be_word(be_word),
                .be_advance(be_advance), .be_rewind(be_rewind), .be_pop(be_pop),
                .tx_en(tx_en[port]), .tx_er(tx_er[port]), .txd(txd[8*port +: 8]),
                .rt_out(events[1]), .rt_lost(events[20]), .be_out(events[8]),
                .aborted(events[13]), .retried(events[14]), .lost_to_abort(events[15]),
                .preempted(events[21])
            );

            assign events[5] = collision[port];

            counters #(.COUNT(COUNT)) counts (
                .clk(clk), .rst(rst), .events(events), .select(counter),
                .value(counter_value[32*port +: 32])
            );
        end
    endgenerate
endmodule

`default_nettype wire
