// Some bits of each row of the program: a memory with two ports, one of which also writes. What is
// read while something is written is anything.
`default_nettype none

module nc_slice #(
    parameter WIDTH = 4,
    parameter ADDRESS = 12
) (
    input  wire               clk,
    input  wire               write,
    input  wire [WIDTH-1:0]   written,
    input  wire [ADDRESS-1:0] address,
    output reg  [WIDTH-1:0]   read,
    input  wire [ADDRESS-1:0] other_address,
    output reg  [WIDTH-1:0]   other_read
);
    (* no_rw_check *)
    reg [WIDTH-1:0] words [0:(1 << ADDRESS) - 1];

    always @(posedge clk) begin
        if (write) words[address] <= written;
        else read <= words[address];
    end
    always @(posedge clk) other_read <= words[other_address];
endmodule

`default_nettype wire
