// Finds frames and the fields of their headers in the stream of an elastic_fifo.
//
// Timing: all outputs are registers. What is said of the octet that is on the stream in cycle t is
// there in cycle t + 1. After the last octet of a frame in cycle u, dv is low in u + 1 and eof is
// high in u + 2. The next sof comes in u + 3 at the earliest.
//
// The preamble is any number of octets 0x55, also none. A burst that has another octet before its
// SFD (IEEE 802.3 clause 3.2.2) is no frame. Whether a frame is too short or too long is for the
// user of the module to say.
`default_nettype none

module rx_frame (
    input  wire        clk,
    input  wire        rst,
    input  wire        dv,
    input  wire        er,
    input  wire [7:0]  data,
    output reg         sof,           // pulse: the SFD
    output reg         bad_preamble,  // pulse: the burst is no frame
    output reg         octet_valid,
    output reg  [7:0]  octet,
    output reg  [11:0] index,         // of the octet behind the SFD, at most 4095
    output reg  [47:0] destination,   // from octet 5 until the next sof
    output reg  [47:0] source,        // from octet 11
    output reg         has_tag,       // from octet 13: one 802.1Q tag
    output reg         type_strobe,   // pulse: at octet 13, or 17 if has_tag
    output reg  [15:0] ethertype,     // behind the tag
    output reg         eof,           // pulse; what is below is held until the next sof
    output reg         fcs_ok,
    output reg         er_seen,       // in any octet of the burst
    output reg  [11:0] length         // octets behind the SFD with the FCS, at most 4095
);
    localparam [31:0] CRC_START = 32'hffffffff;
    localparam [31:0] CRC_GOOD = 32'hdebb20e3;
    localparam [15:0] TAG = 16'h8100;

    localparam [1:0] PREAMBLE = 2'd0;  // or no burst at all
    localparam [1:0] FRAME = 2'd1;
    localparam [1:0] NO_FRAME = 2'd2;

    reg [1:0]  state;
    reg        error;
    reg [31:0] crc;
    reg [11:0] count;
    wire [31:0] crc_next;

    crc32 fcs (.crc(crc), .octet(data), .next(crc_next));

    wire start = dv && state == PREAMBLE && data == 8'hd5;
    wire bad = dv && state == PREAMBLE && data != 8'hd5 && data != 8'h55;
    wire in_frame = dv && state == FRAME;
    wire ends = !dv && state == FRAME;
    wire [15:0] type_here = {octet, data};
    wire at_type = in_frame && count == 12'd13;
    wire at_inner_type = in_frame && count == 12'd17 && has_tag;

    always @(posedge clk) begin
        sof <= start;
        bad_preamble <= bad;
        octet_valid <= in_frame;
        octet <= data;
        index <= count;
        type_strobe <= (at_type && type_here != TAG) || at_inner_type;
        eof <= ends;

        if (!dv)
            state <= PREAMBLE;
        else if (start)
            state <= FRAME;
        else if (bad)
            state <= NO_FRAME;

        error <= dv && (error || er);
        if (start) begin
            crc <= CRC_START;
            count <= 12'd0;
            has_tag <= 1'b0;
        end
        if (in_frame) begin
            crc <= crc_next;
            count <= count + {11'd0, count != 12'hfff};
        end
        if (in_frame && count < 12'd6)
            destination <= {destination[39:0], data};
        if (in_frame && count >= 12'd6 && count < 12'd12)
            source <= {source[39:0], data};
        if (at_type || at_inner_type)
            ethertype <= type_here;
        if (at_type)
            has_tag <= type_here == TAG;
        if (ends) begin
            fcs_ok <= crc == CRC_GOOD;
            er_seen <= error;
            length <= count;
        end
        if (rst) begin
            state <= NO_FRAME;  // what is on the stream already is no whole burst
            error <= 1'b0;
            sof <= 1'b0;
            bad_preamble <= 1'b0;
            octet_valid <= 1'b0;
            type_strobe <= 1'b0;
            eof <= 1'b0;
        end
    end
endmodule

`default_nettype wire
