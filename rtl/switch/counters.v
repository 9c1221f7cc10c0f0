// The counters of one port: 32 bits each, which go on from 0 after their greatest value.
//
// Timing: an event in cycle t is counted in t + 1; `value` is that of `select` one cycle before.
`default_nettype none

module counters #(
    parameter COUNT = 22
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [COUNT-1:0] events,
    input  wire [4:0]       select,
    output reg  [31:0]      value
);
    reg [32*COUNT-1:0] numbers;

    integer each;
    always @(posedge clk) begin
        for (each = 0; each < COUNT; each = each + 1)
            numbers[32*each +: 32] <= numbers[32*each +: 32] + {31'd0, events[each]};
        value <= 32'd0;
        for (each = 0; each < COUNT; each = each + 1)
            if (select == each[4:0])
                value <= numbers[32*each +: 32];
        if (rst)
            numbers <= {32*COUNT{1'b0}};
    end
endmodule

`default_nettype wire
