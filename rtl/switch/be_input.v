// The input side of the best-effort path: stores each frame, asks for its outputs when it was
// good, and hands it to the fabric.
//
// Timing: with `turn` (one cycle of four) a word leaves, one cycle later on move_*. A frame is
// `begin` with its length, then all its words, the last one with `end`. Words hold the first octet
// in their least significant eight bits.
//
// The ring takes a frame's words as they come, and forgets them if the frame was not good. It
// empties as fast as a port can fill it, so its size only has to cover one frame and the wait for
// the table of addresses.
`default_nettype none

module be_input (
    input  wire        clk,
    input  wire        rst,
    // rx_frame and classifier
    input  wire        sof,
    input  wire        octet_valid,
    input  wire [7:0]  octet,
    input  wire        eof,
    input  wire [11:0] length,
    input  wire [47:0] destination,
    input  wire [47:0] source,
    input  wire        best_effort,
    // mac_table
    output reg         request,
    output reg  [47:0] request_destination,
    output reg  [47:0] request_source,
    input  wire        answer,
    input  wire [3:0]  outputs,
    // fabric
    input  wire        turn,
    output reg         move_begin,
    output reg         move_word,
    output reg         move_end,
    output reg  [3:0]  move_outputs,
    output reg  [10:0] move_length,
    output wire [31:0] move_data,
    // pulses for the counters
    output reg         be_in,
    output reg         be_filtered,
    output reg         be_in_full
);
    localparam ADDRESS_BITS = 10;
    localparam [ADDRESS_BITS:0] SIZE = 1 << ADDRESS_BITS;
    localparam [ADDRESS_BITS:0] ONE = 1;
    localparam [43:0] RESERVED = 44'h0180c200000;  // IEEE 802.1Q table 8-1

    reg [31:0] memory [0:(1 << ADDRESS_BITS)-1];

    // ---- in ----
    reg [ADDRESS_BITS:0] frame_start;
    reg [ADDRESS_BITS:0] write_pointer;
    reg [ADDRESS_BITS:0] read_pointer;
    reg [23:0] part;
    reg [1:0]  lane;
    reg        full;
    reg [10:0] request_length;

    wire room = write_pointer - read_pointer != SIZE;
    wire word_ends = (octet_valid && lane == 2'd3) || (eof && lane != 2'd0);
    wire write = word_ends && room;
    wire [ADDRESS_BITS:0] write_next = write ? write_pointer + ONE : write_pointer;
    wire lacks_room = full || (word_ends && !room);
    wire is_reserved = destination[47:4] == RESERVED;
    wire taken = best_effort && !lacks_room && !request;
    wire accept = taken && !is_reserved;
    // The last word of a frame may be a part of one.
    wire [23:0] rest = lane == 2'd1 ? {16'd0, part[23:16]}
        : lane == 2'd2 ? {8'd0, part[23:8]} : part;

    always @(posedge clk) begin
        if (write)
            memory[write_pointer[ADDRESS_BITS-1:0]] <= octet_valid ? {octet, part} : {8'd0, rest};
        if (octet_valid)
            part <= {octet, part[23:8]};
    end

    always @(posedge clk) begin
        if (sof) begin
            write_pointer <= frame_start;
            lane <= 2'd0;
            full <= 1'b0;
        end else begin
            write_pointer <= write_next;
            lane <= octet_valid ? lane + 2'd1 : lane;
            full <= lacks_room;
        end
        if (accept) begin
            frame_start <= write_next;
            request_destination <= destination;
            request_source <= source;
            request_length <= length[10:0];
        end
        request <= accept || (request && !answer);
        be_in <= taken;
        be_in_full <= best_effort && !taken;
        be_filtered <= (taken && is_reserved) || (answer && outputs == 4'd0);
        if (rst) begin
            frame_start <= {ADDRESS_BITS+1{1'b0}};
            write_pointer <= {ADDRESS_BITS+1{1'b0}};
            full <= 1'b0;
            request <= 1'b0;
            be_in <= 1'b0;
            be_in_full <= 1'b0;
            be_filtered <= 1'b0;
        end
    end

    // ---- out ----
    reg        moving;
    reg [8:0]  words_left;
    reg [31:0] read_data;
    wire       next_valid;
    wire [10:0] next_length;
    wire [3:0] next_outputs;
    wire [8:0] next_words = next_length[10:2] + {8'd0, next_length[1:0] != 2'd0};
    wire       take = turn && next_valid && !moving;
    wire       skip = take && next_outputs == 4'd0;
    wire       last = turn && moving && words_left == 9'd1;
    wire [6:0] next_room;
    wire       next_empty;

    assign move_data = read_data;

    queue #(.WIDTH(15), .ADDRESS_BITS(6)) next (
        .clk(clk), .rst(rst),
        .push(answer), .in({request_length, outputs}),
        .room(next_room), .empty(next_empty),
        .pop(skip || last), .valid(next_valid), .out({next_length, next_outputs})
    );
    // At most 64 frames of 16 words are in the ring, so the queue always has room.
    wire unused = &{1'b0, next_room, next_empty, length[11]};

    always @(posedge clk) begin
        // The pointer stands still for three cycles of four, so the word is there at its turn.
        if (!turn)
            read_data <= memory[read_pointer[ADDRESS_BITS-1:0]];
    end

    always @(posedge clk) begin
        move_begin <= take && !skip;
        move_word <= turn && moving;
        move_end <= last;
        move_outputs <= next_outputs;
        move_length <= next_length;
        if (take && !skip) begin
            moving <= 1'b1;
            words_left <= next_words;
        end else if (turn && moving) begin
            words_left <= words_left - 9'd1;
            moving <= !last;
        end
        if (skip)
            read_pointer <= read_pointer + {{ADDRESS_BITS-8{1'b0}}, next_words};
        else if (turn && moving)
            read_pointer <= read_pointer + ONE;
        if (rst) begin
            read_pointer <= {ADDRESS_BITS+1{1'b0}};
            moving <= 1'b0;
            move_begin <= 1'b0;
            move_word <= 1'b0;
            move_end <= 1'b0;
        end
    end
endmodule

`default_nettype wire
