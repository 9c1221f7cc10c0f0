// Limits how often a port may bring real-time frames: a token bucket that is counted in cycles.
//
// Each frame costs `interval` cycles, and at most `burst` frames are saved up. An interval of 0
// switches it off; a burst of 0 lets no frame pass. `restart` fills the bucket.
// Timing: `credit` is a register; `spend` in cycle t shows in t + 1.
//
// The credit in cycles is tokens * interval + cycles, so no multiplication is needed.
`default_nettype none

module guardian (
    input  wire        clk,
    input  wire        rst,
    input  wire [31:0] interval,
    input  wire [7:0]  burst,
    input  wire        restart,
    input  wire        spend,
    output wire        credit
);
    reg [7:0] tokens;
    reg [31:0] cycles;
    reg off;

    wire earned = tokens < burst && cycles + 32'd1 >= interval;
    wire spent = spend && tokens != 8'd0;

    assign credit = off || tokens != 8'd0;

    always @(posedge clk) begin
        off <= interval == 32'd0;
        cycles <= tokens >= burst || earned ? 32'd0 : cycles + 32'd1;
        tokens <= tokens + {7'd0, earned} - {7'd0, spent};
        if (rst || restart || off) begin
            tokens <= burst;
            cycles <= 32'd0;
        end
        if (rst)
            off <= 1'b1;
    end
endmodule

`default_nettype wire
