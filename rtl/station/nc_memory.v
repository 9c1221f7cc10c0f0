// A memory with one port to write and one to read. What is read is there one cycle behind its
// address. A word that is written in the cycle of its address is read as anything: nobody may use
// it. With NC_COLLISIONS that is its complement, so that a test shows who does.
`default_nettype none

module nc_memory #(
    parameter WIDTH = 32,
    parameter ADDRESS = 12
) (
    input  wire               clk,
    input  wire               write,
    input  wire [ADDRESS-1:0] write_address,
    input  wire [WIDTH-1:0]   write_data,
    input  wire [ADDRESS-1:0] read_address,
    output reg  [WIDTH-1:0]   read_data
);
    (* no_rw_check *)
    reg [WIDTH-1:0] words [0:(1 << ADDRESS) - 1];

    always @(posedge clk) begin
        if (write) words[write_address] <= write_data;
        read_data <= words[read_address];
`ifdef NC_COLLISIONS
        if (write && write_address == read_address) read_data <= ~words[read_address];
`endif
    end
endmodule

`default_nettype wire
