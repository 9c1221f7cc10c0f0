// The best-effort frames of one output, in the order in which their first words came.
//
// Inputs bring their frames word by word, in turns. A frame gets its place as a whole when it
// begins; if there is none, it is dropped at this output. It leaves when its last word is in, and
// keeps its place until it was sent, so that it can be sent again.
//
// Timing: after `advance` or `rewind` the word is there two cycles later. `ready`, `length` and the
// first word belong to the next frame four cycles after `pop`, less than the gap between frames.
`default_nettype none

module output_ring #(
    parameter ADDRESS_BITS = 12  // in words of four octets
) (
    input  wire        clk,
    input  wire        rst,
    // fabric: what the input `from` does in this cycle
    input  wire [1:0]  from,
    input  wire        move_begin,
    input  wire        move_word,
    input  wire        move_end,
    input  wire [10:0] move_length,
    input  wire [31:0] move_data,
    // port_tx
    output wire        ready,
    output wire [10:0] length,
    output wire [31:0] word,
    input  wire        advance,
    input  wire        rewind,
    input  wire        pop,
    output reg         be_full  // pulse
);
    // As many frames as the ring has room for, if all are of the shortest length.
    localparam FRAME_BITS = ADDRESS_BITS - 4;
    localparam [ADDRESS_BITS:0] SIZE = 1 << ADDRESS_BITS;
    localparam [ADDRESS_BITS-1:0] ONE = 1;

    function [8:0] words;
        input [10:0] octets;
        words = octets[10:2] + {8'd0, octets[1:0] != 2'd0};
    endfunction

    reg [31:0] memory [0:(1 << ADDRESS_BITS)-1];
    reg [31:0] read_data;

    // ---- in ----
    reg [ADDRESS_BITS-1:0] write_address [0:3];  // of each input's frame
    reg [ADDRESS_BITS-1:0] next_start;
    reg [ADDRESS_BITS:0]   used;
    reg [3:0]              active;               // inputs whose frame has a place
    reg [FRAME_BITS:0]     whole [0:3];          // frames of each input that are complete

    wire [FRAME_BITS:0] frames_room;
    wire [8:0] needed = words(move_length);
    wire [ADDRESS_BITS:0] needed_wide = {{ADDRESS_BITS-8{1'b0}}, needed};
    wire has_room = SIZE - used >= needed_wide && frames_room != {FRAME_BITS+1{1'b0}};
    wire accept = move_begin && has_room;
    wire write = move_word && active[from];
    wire completed = write && move_end;

    wire       next_valid;
    wire [1:0] next_from;
    wire       frames_empty;
    queue #(.WIDTH(13), .ADDRESS_BITS(FRAME_BITS)) frames (
        .clk(clk), .rst(rst),
        .push(accept), .in({move_length, from}),
        .room(frames_room), .empty(frames_empty),
        .pop(pop), .valid(next_valid), .out({length, next_from})
    );
    wire unused = &{1'b0, frames_empty};

    always @(posedge clk) begin
        if (write)
            memory[write_address[from]] <= move_data;
        read_data <= memory[read_address];
    end

    integer input_number;
    always @(posedge clk) begin
        be_full <= move_begin && !has_room;
        if (accept) begin
            write_address[from] <= next_start;
            next_start <= next_start + needed_wide[ADDRESS_BITS-1:0];
        end else if (write) begin
            write_address[from] <= write_address[from] + ONE;
        end
        if (move_begin)
            active[from] <= has_room;
        else if (move_end)
            active[from] <= 1'b0;
        for (input_number = 0; input_number < 4; input_number = input_number + 1)
            whole[input_number] <= whole[input_number]
                + {{FRAME_BITS{1'b0}}, completed && from == input_number[1:0]}
                - {{FRAME_BITS{1'b0}}, pop && next_from == input_number[1:0]};
        used <= used + (accept ? needed_wide : {ADDRESS_BITS+1{1'b0}})
            - (pop ? leaving : {ADDRESS_BITS+1{1'b0}});
        if (rst) begin
            be_full <= 1'b0;
            next_start <= {ADDRESS_BITS{1'b0}};
            used <= {ADDRESS_BITS+1{1'b0}};
            active <= 4'd0;
            for (input_number = 0; input_number < 4; input_number = input_number + 1)
                whole[input_number] <= {FRAME_BITS+1{1'b0}};
        end
    end

    // ---- out ----
    reg [ADDRESS_BITS-1:0] frame_start;
    reg [ADDRESS_BITS-1:0] read_address;
    reg                    popped;
    wire [ADDRESS_BITS:0]  leaving = {{ADDRESS_BITS-8{1'b0}}, words(length)};
    wire [ADDRESS_BITS-1:0] next_frame = frame_start + leaving[ADDRESS_BITS-1:0];

    assign word = read_data;
    assign ready = next_valid && !popped && whole[next_from] != {FRAME_BITS+1{1'b0}};

    always @(posedge clk) begin
        popped <= pop;
        if (pop) begin
            frame_start <= next_frame;
            read_address <= next_frame;
        end else if (rewind) begin
            read_address <= frame_start;
        end else if (advance) begin
            read_address <= read_address + ONE;
        end
        if (rst) begin
            popped <= 1'b0;
            frame_start <= {ADDRESS_BITS{1'b0}};
            read_address <= {ADDRESS_BITS{1'b0}};
        end
    end
endmodule

`default_nettype wire
