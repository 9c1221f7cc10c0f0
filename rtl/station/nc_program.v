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
    output wire [`NC_ROW-1:0] next_row,
    input  wire [11:0]        target_address,
    output wire [`NC_ROW-1:0] target_row
);
    // Memories of four bits, which are one block each where blocks have 16 Kbit: so no other logic
    // is behind them. One port of a memory that has two is written and read.
    localparam SLICES = (`NC_ROW + 3) / 4;
    wire [11:0] address = write ? write_address : next_address;
    wire [4*SLICES-1:0] written = {{(4 * SLICES - `NC_ROW){1'b0}}, write_row};
    // The last slice has bits of no row.
    // verilator lint_off UNUSEDSIGNAL
    wire [4*SLICES-1:0] next_read, target_read;
    // verilator lint_on UNUSEDSIGNAL
    genvar i;
    generate
        for (i = 0; i < SLICES; i = i + 1) begin : slices
            nc_slice slice (
                .clk(clk), .write(write), .written(written[4*i +: 4]), .address(address),
                .read(next_read[4*i +: 4]), .other_address(target_address),
                .other_read(target_read[4*i +: 4])
            );
        end
    endgenerate
    assign next_row = next_read[`NC_ROW-1:0];
    assign target_row = target_read[`NC_ROW-1:0];
endmodule

`default_nettype wire
