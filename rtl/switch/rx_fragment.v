// Puts the fragments of preempted frames together (IEEE 802.3br clause 99.4, receive processing).
//
// Timing: an octet that is on the stream in cycle t is on the outputs in t + 5, so that the check
// sequence of a fragment is known before it leaves: an FCS leaves, an mCRC does not. `eof` comes in
// the cycle behind the last octet. Between the fragments of a frame `open` stays high.
//
// A frame begins with SMD-S and goes on with SMD-C of its number and the next fragment count. A
// fragment that does not fit, that has an error or a wrong check sequence, ends the frame without
// eof: `bad`. What it left is overwritten from the next sof on. Real-time frames have no business
// here: they are dropped and counted as bad, too.
`default_nettype none

module rx_fragment (
    input  wire        clk,
    input  wire        rst,
    input  wire        dv,
    input  wire        er,
    input  wire [7:0]  data,
    input  wire        abandon,   // pulse: forget the frame that is open
    output reg         fragment,  // pulse in t + 1: an SMD of a fragment in t
    output wire        open,      // a frame is on its way
    output reg         sof,
    output reg         octet_valid,
    output reg  [7:0]  octet,
    output reg         eof,       // with what is below
    output reg  [11:0] length,
    output reg  [47:0] destination,
    output reg  [47:0] source,
    output reg         bad        // pulse
);
    localparam [31:0] CRC_START = 32'hffffffff;
    localparam [47:0] GROUP = 48'h034f424e4300;

    localparam [1:0] PREAMBLE = 2'd0;  // or no burst at all
    localparam [1:0] COUNT = 2'd1;     // the fragment count is next
    localparam [1:0] OCTETS = 2'd2;
    localparam [1:0] OTHER = 2'd3;     // a burst that is none of ours

    // {is one, number} of SMD-S and of fragment counts, and of SMD-C
    function [2:0] start_code;
        input [7:0] value;
        case (value)
            8'he6: start_code = 3'd4;
            8'h4c: start_code = 3'd5;
            8'h7f: start_code = 3'd6;
            8'hb3: start_code = 3'd7;
            default: start_code = 3'd0;
        endcase
    endfunction

    function [2:0] continue_code;
        input [7:0] value;
        case (value)
            8'h61: continue_code = 3'd4;
            8'h52: continue_code = 3'd5;
            8'h9e: continue_code = 3'd6;
            8'h2a: continue_code = 3'd7;
            default: continue_code = 3'd0;
        endcase
    endfunction

    reg [1:0]  state;
    reg [1:0]  frame_number;
    reg [1:0]  next_fragment;
    reg        waiting;        // a frame has begun and is not complete
    reg        error;
    reg [31:0] held;           // the last four octets, the oldest in the lowest bits
    reg [3:0]  held_valid;
    reg [4:0]  starts;         // sof and eof on their way with the octets
    reg [4:0]  ends;
    reg [31:0] crc;
    reg [11:0] count;
    reg [7:0]  last;           // the last octet that has left
    wire [31:0] crc_next;

    crc32 check (.crc(crc), .octet(held[7:0]), .next(crc_next));

    wire [2:0] start = start_code(data);
    wire [2:0] continuation = continue_code(data);
    wire in_preamble = dv && state == PREAMBLE;
    wire begins = in_preamble && start[2];
    wire continues = in_preamble && continuation[2];
    wire in_order = continues && waiting && continuation[1:0] == frame_number;
    wire counted = state == COUNT && dv && start == {1'b1, next_fragment};
    wire inside_burst = state == OCTETS && dv;
    wire burst_ends = state == OCTETS && !dv;
    wire [31:0] expected = ~crc;
    wire full = &held_valid;
    wire whole = burst_ends && full && !error && held == expected;
    wire cut = burst_ends && full && !error && held == (expected ^ 32'h0000ffff);
    wire misfit = (begins && waiting) || (continues && !in_order) || (state == COUNT && !counted)
        || (burst_ends && !whole && !cut);

    wire leaves = held_valid[0] && !cut;
    wire [15:0] type_here = {last, held[7:0]};
    wire nc_type = type_here == 16'h88b5 || type_here == 16'h88b6;
    reg  has_tag;
    reg  real_time;

    assign open = waiting || starts != 5'd0 || ends != 5'd0 || octet_valid;

    always @(posedge clk) begin
        fragment <= begins || continues;
        if (!dv)
            state <= PREAMBLE;
        else if (state == PREAMBLE && data != 8'h55)
            state <= begins ? OCTETS : in_order ? COUNT : OTHER;
        else if (state == COUNT)
            state <= counted ? OCTETS : OTHER;
        error <= dv && (error || er);
        if (begins) begin
            frame_number <= start[1:0];
            next_fragment <= 2'd0;
        end else if (counted) begin
            next_fragment <= next_fragment + 2'd1;
        end
        if (begins)
            waiting <= 1'b1;
        else if (whole || misfit || abandon)
            waiting <= 1'b0;

        held <= {data, held[31:8]};
        held_valid <= cut ? 4'd0 : {inside_burst, held_valid[3:1]};
        starts <= {starts[3:0], begins};
        ends <= {ends[3:0], whole};
        bad <= misfit || (ends[3] && real_time);
        if (rst) begin
            state <= OTHER;
            waiting <= 1'b0;
            held_valid <= 4'd0;
            starts <= 5'd0;
            ends <= 5'd0;
            bad <= 1'b0;
            fragment <= 1'b0;
        end
    end

    // ---- what leaves ----
    always @(posedge clk) begin
        sof <= starts[3];
        octet_valid <= leaves;
        octet <= held[7:0];
        eof <= ends[3] && !real_time;
        length <= count;
        if (starts[3]) begin
            crc <= CRC_START;
            count <= 12'd0;
            has_tag <= 1'b0;
            real_time <= 1'b0;
        end
        if (leaves) begin
            crc <= crc_next;
            last <= held[7:0];
            count <= count + {11'd0, count != 12'hfff};
            if (count < 12'd6)
                destination <= {destination[39:0], held[7:0]};
            if (count >= 12'd6 && count < 12'd12)
                source <= {source[39:0], held[7:0]};
            if (count == 12'd13) begin
                has_tag <= type_here == 16'h8100;
                real_time <= destination == GROUP && nc_type;
            end
            if (count == 12'd17 && has_tag)
                real_time <= destination == GROUP && nc_type;
        end
        if (rst) begin
            sof <= 1'b0;
            octet_valid <= 1'b0;
            eof <= 1'b0;
        end
    end
endmodule

`default_nettype wire
