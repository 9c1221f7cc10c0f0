// Says of each received frame which path is its own, and what is wrong with it.
//
// Real-time frames go to the group of Network Code with one of its EtherTypes, tagged or not. All
// other frames are best effort.
//
// Timing: if the SFD is on the stream in cycle q, `announce` is high in q + 20, for frames with and
// without a tag: the latency of a frame does not depend on its tag. What a frame turned out to be
// is said in the cycle behind its eof.
`default_nettype none

module classifier (
    input  wire        clk,
    input  wire        rst,
    // rx_frame
    input  wire        sof,
    input  wire        octet_valid,
    input  wire [11:0] index,
    input  wire [47:0] destination,
    input  wire        has_tag,
    input  wire        type_strobe,
    input  wire [15:0] ethertype,
    input  wire        eof,
    input  wire        fcs_ok,
    input  wire        er_seen,
    input  wire [11:0] length,
    input  wire [11:0] max_length,
    // guardian, in the cycle of the decision
    output wire        sync,         // NC-SYNC, else NC-DATA
    input  wire        pass,
    input  wire [11:0] pass_limit,   // octets behind the SFD
    output reg         announce,     // pulse: a real-time frame that may pass,
    output reg         announce_sync, // that begins a round,
    output reg  [11:0] limit,        // and how long it may be; at least 64
    output wire        best_effort,  // in the cycle of eof: a good frame for the other path
    // pulses for the counters
    output reg         rt_in,
    output reg         guarded,
    output reg         rt_bad_fcs,
    output reg         rt_runt,
    output reg         rt_cut,
    output reg         be_bad,
    output reg         be_runt,
    output reg         be_jumbo
);
    localparam [47:0] GROUP = 48'h034f424e4300;
    localparam [15:0] NC_DATA = 16'h88b5;
    localparam [15:0] NC_SYNC = 16'h88b6;
    localparam [11:0] SHORTEST = 12'd64;
    localparam [11:0] LONGEST = 12'd1522;

    reg to_group;
    reg real_time;
    reg cut;
    reg [3:0] untagged;  // a tag is 4 octets

    wire nc_type = ethertype == NC_DATA || ethertype == NC_SYNC;
    wire found = type_strobe && to_group && nc_type;
    wire decide = untagged[3] || (found && has_tag);
    wire runt = length < SHORTEST;
    wire jumbo = length > LONGEST;
    wire good = fcs_ok && !er_seen;
    wire too_long = real_time && octet_valid && index >= limit && !cut;

    assign sync = ethertype == NC_SYNC;
    assign best_effort = eof && !real_time && !runt && !jumbo && good;

    always @(posedge clk) begin
        to_group <= destination == GROUP;
        untagged <= {untagged[2:0], found && !has_tag};
        real_time <= !sof && (real_time || found);
        cut <= !sof && (cut || too_long);
        announce <= decide && pass;
        announce_sync <= decide && pass && sync;
        guarded <= decide && !pass;
        if (decide)
            limit <= pass ? pass_limit : max_length;
        rt_in <= decide;
        rt_runt <= eof && real_time && runt;
        rt_cut <= too_long;
        rt_bad_fcs <= eof && real_time && !runt && !cut && !good;
        be_runt <= eof && !real_time && runt;
        be_jumbo <= eof && !real_time && jumbo;
        be_bad <= eof && !real_time && !runt && !jumbo && !good;
        if (rst) begin
            untagged <= 4'd0;
            real_time <= 1'b0;
            cut <= 1'b0;
            announce <= 1'b0;
            announce_sync <= 1'b0;
            limit <= LONGEST;
            guarded <= 1'b0;
            rt_in <= 1'b0;
            rt_runt <= 1'b0;
            rt_cut <= 1'b0;
            rt_bad_fcs <= 1'b0;
            be_runt <= 1'b0;
            be_jumbo <= 1'b0;
            be_bad <= 1'b0;
        end
    end
endmodule

`default_nettype wire
