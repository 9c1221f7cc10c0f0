// Four bits of each row of the program: a memory with two ports, one of which also writes. What is
// read while something is written is anything.
`default_nettype none

module nc_slice (
    input  wire        clk,
    input  wire        write,
    input  wire [3:0]  written,
    input  wire [11:0] address,
    output reg  [3:0]  read,
    input  wire [11:0] other_address,
    output reg  [3:0]  other_read
);
    (* no_rw_check *)
    reg [3:0] words [0:4095];

    always @(posedge clk) begin
        if (write) words[address] <= written;
        else read <= words[address];
    end
    always @(posedge clk) other_read <= words[other_address];
endmodule

`default_nettype wire
