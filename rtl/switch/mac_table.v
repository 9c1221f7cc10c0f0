// Which port a station is at, learnt from the sources of good frames (IEEE 802.1Q clause 8.7).
//
// 1,024 entries, one for each hash of an address. A station of the same hash as another one takes
// its place, and frames to the other one are flooded until it sends again.
//
// Timing: requests are served one at a time, the lowest port's first; an answer comes 3 cycles
// after its service began, and a port asks at most once in 64 cycles. Clearing the table takes
// 2,048 cycles or more after a reset; until then all frames are flooded and nothing is learnt.
//
// Ageing: an entry loses one of its three lives each 1,024 * AGEING cycles, and none is left after
// two to three such times. The default makes that 200 s to 300 s at 125 MHz.
`default_nettype none

module mac_table #(
    parameter AGEING = 12207031
) (
    input  wire         clk,
    input  wire         rst,
    input  wire [3:0]   request,
    input  wire [191:0] destinations,  // 48 bits of each port
    input  wire [191:0] sources,
    output reg  [3:0]   answer,        // pulse
    output reg  [3:0]   outputs
);
    localparam [2:0] CLEAR = 3'd0;
    localparam [2:0] IDLE = 3'd1;
    localparam [2:0] READ = 3'd2;
    localparam [2:0] COMPARE = 3'd3;
    localparam [2:0] ANSWER = 3'd4;
    localparam [2:0] AGE_READ = 3'd5;
    localparam [2:0] AGE_WRITE = 3'd6;
    localparam [31:0] AGEING_LAST = AGEING - 1;

    function [9:0] hash;
        input [47:0] station;
        hash = station[9:0] ^ station[19:10] ^ station[29:20] ^ station[39:30]
            ^ {2'd0, station[47:40]};
    endfunction

    // An entry: lives, port, address.
    reg [51:0] memory [0:1023];
    reg [51:0] entry;
    reg [9:0]  read_address;
    reg [9:0]  write_address;
    reg [51:0] write_entry;
    reg        write;

    reg [2:0]  state;
    reg [1:0]  port;
    reg [47:0] destination;
    reg [47:0] source;
    reg        clearing;
    reg [9:0]  sweep;
    reg [31:0] age_timer;
    reg        age_due;

    wire [3:0] waiting = request & ~answer;
    wire [1:0] next_port = waiting[0] ? 2'd0 : waiting[1] ? 2'd1 : waiting[2] ? 2'd2 : 2'd3;
    wire [47:0] next_destination = waiting[0] ? destinations[47:0]
        : waiting[1] ? destinations[95:48] : waiting[2] ? destinations[143:96]
        : destinations[191:144];
    wire [47:0] next_source = waiting[0] ? sources[47:0]
        : waiting[1] ? sources[95:48] : waiting[2] ? sources[143:96] : sources[191:144];
    wire [1:0] lives = entry[51:50];
    wire found = lives != 2'd0 && entry[47:0] == destination && !destination[40] && !clearing;
    reg        known;
    reg [1:0]  known_port;

    always @(posedge clk) begin
        if (write)
            memory[write_address] <= write_entry;
        entry <= memory[read_address];
    end

    always @(posedge clk) begin
        write <= 1'b0;
        answer <= 4'd0;
        known <= found;
        known_port <= entry[49:48];
        if (age_timer == AGEING_LAST) begin
            age_timer <= 32'd0;
            age_due <= 1'b1;
        end else begin
            age_timer <= age_timer + 32'd1;
        end
        case (state)
            CLEAR: begin  // one entry for each visit, so that requests are served meanwhile
                write <= 1'b1;
                write_address <= sweep;
                write_entry <= 52'd0;
                sweep <= sweep + 10'd1;
                clearing <= sweep != 10'd1023;
                state <= IDLE;
            end
            IDLE: begin
                port <= next_port;
                destination <= next_destination;
                source <= next_source;
                if (waiting != 4'd0) begin
                    state <= READ;
                    read_address <= hash(next_destination);
                end else if (clearing) begin
                    state <= CLEAR;
                end else if (age_due) begin
                    age_due <= 1'b0;
                    state <= AGE_READ;
                    read_address <= sweep;
                end
            end
            READ: state <= COMPARE;
            COMPARE: begin
                state <= ANSWER;
                write <= !source[40] && !clearing;
                write_address <= hash(source);
                write_entry <= {2'd3, port, source};
            end
            ANSWER: begin
                state <= IDLE;
                answer <= 4'd1 << port;
                outputs <= (known ? 4'd1 << known_port : 4'd15) & ~(4'd1 << port);
            end
            AGE_READ: state <= AGE_WRITE;
            default: begin  // AGE_WRITE
                state <= IDLE;
                sweep <= sweep + 10'd1;
                write <= lives != 2'd0;
                write_address <= sweep;
                write_entry <= {lives - 2'd1, entry[49:0]};
            end
        endcase
        if (rst) begin
            state <= IDLE;
            clearing <= 1'b1;
            sweep <= 10'd0;
            age_timer <= 32'd0;
            age_due <= 1'b0;
            write <= 1'b0;
        end
    end
endmodule

`default_nettype wire
