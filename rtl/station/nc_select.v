// One of 256 bits: what it was in the cycle of its number, one cycle later.
`default_nettype none

module nc_select (
    input  wire         clk,
    input  wire [255:0] bits,
    input  wire [7:0]   number,
    output wire         chosen
);
    reg [15:0] column;
    reg [3:0] place;
    integer i;
    always @(posedge clk) begin
        for (i = 0; i < 16; i = i + 1) column[i] <= bits[{i[3:0], number[3:0]}];
        place <= number[7:4];
    end
    assign chosen = column[place];
endmodule

`default_nettype wire
