// The program: rows of instructions, written when they are loaded, and read by two ports. What is
// read is there one cycle behind its address. While it is written nothing is read.
`default_nettype none
`include "nc_row.vh"

module nc_program (
    input  wire               clk,
    input  wire               write,
    input  wire [11:0]        write_address,
    input  wire [`NC_ROW-1:0] write_row,
    input  wire [11:0]        next_address,
    output reg  [`NC_ROW-1:0] next_row,
    input  wire [11:0]        target_address,
    output reg  [`NC_ROW-1:0] target_row
);
    (* no_rw_check *)
    reg [`NC_ROW-1:0] rows [0:4095];

    // One port of a memory that has two is written and read.
    wire [11:0] address = write ? write_address : next_address;
    always @(posedge clk) begin
        if (write) rows[address] <= write_row;
        else next_row <= rows[address];
    end
    always @(posedge clk) target_row <= rows[target_address];
endmodule

`default_nettype wire
