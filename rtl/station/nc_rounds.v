// Who began the current round: none yet, the station itself, or another by its address. A frame
// that begins a round and is not waited for is discarded; it is of a second master if it is not of
// the station that began the round in which it came. It counts one cycle late; so does its reset.
`default_nettype none

module nc_rounds (
    input  wire        clk,
    input  wire        rst,
    input  wire        strobe,
    input  wire        strobe_taken,
    input  wire [47:0] source,
    input  wire        begins_round,
    // The number of the round that is begun next; in the cycle behind its beginning its own.
    output reg  [31:0] round,
    output reg         counts_seen,
    output reg         counts_discarded,
    output reg         counts_second
);
    // What came in the cycle before. Its `source` is still there.
    reg late_rst, came, was_taken, begins;
    always @(posedge clk) begin
        late_rst <= rst;
        came <= strobe && !rst;
        was_taken <= strobe_taken && !rst;
        begins <= begins_round && !rst;
    end

    reg has_begun, is_own;
    reg [47:0] master;
    wire is_second = has_begun && (is_own || master != source);

    always @(posedge clk) begin
        if (late_rst) begin
            has_begun <= 1'b0;
            round <= 32'd0;
            counts_seen <= 1'b0;
            counts_discarded <= 1'b0;
            counts_second <= 1'b0;
        end else begin
            if (was_taken || begins) has_begun <= 1'b1;
            if (begins) round <= round + 32'd1;
            counts_seen <= was_taken;
            counts_discarded <= came && !was_taken;
            counts_second <= came && !was_taken && is_second;
        end
        if (begins) is_own <= 1'b1;
        else if (was_taken) begin
            is_own <= 1'b0;
            master <= source;
        end
    end
endmodule

`default_nettype wire
