// The program: rows of instructions, written when they are loaded, and read by two ports. What is
// read is there one cycle behind its address. While it is written nothing is read.
`default_nettype none
`include "nc_row.vh"

module nc_program #(
    // Rows: 2 to the power of this.
    parameter ADDRESS = 12
) (
    input  wire               clk,
    input  wire               write,
    // Of addresses only what there are rows for is looked at.
    // verilator lint_off UNUSEDSIGNAL
    input  wire [11:0]        write_address,
    input  wire [`NC_ROW-1:0] write_row,
    input  wire [11:0]        next_address,
    input  wire [11:0]        target_address,
    // verilator lint_on UNUSEDSIGNAL
    output wire [`NC_ROW-1:0] next_row,
    output wire [`NC_ROW-1:0] target_row
);
    // Memories of as many bits as one block has of 16 Kbit, or 18: so no other logic is behind
    // them. One port of a memory that has two is written and read.
    localparam WIDTH = ADDRESS >= 12 ? 4 : ADDRESS == 11 ? 9 : 18;
    localparam SLICES = (`NC_ROW + WIDTH - 1) / WIDTH;
    wire [ADDRESS-1:0] address =
        write ? write_address[ADDRESS-1:0] : next_address[ADDRESS-1:0];
    wire [WIDTH*SLICES-1:0] written = {{(WIDTH * SLICES - `NC_ROW){1'b0}}, write_row};
    // The last slice has bits of no row.
    // verilator lint_off UNUSEDSIGNAL
    wire [WIDTH*SLICES-1:0] next_read, target_read;
    // verilator lint_on UNUSEDSIGNAL
    genvar i;
    generate
        for (i = 0; i < SLICES; i = i + 1) begin : slices
            nc_slice #(.WIDTH(WIDTH), .ADDRESS(ADDRESS)) slice (
                .clk(clk), .write(write), .written(written[WIDTH*i +: WIDTH]),
                .address(address), .read(next_read[WIDTH*i +: WIDTH]),
                .other_address(target_address[ADDRESS-1:0]),
                .other_read(target_read[WIDTH*i +: WIDTH])
            );
        end
    endgenerate
    assign next_row = next_read[`NC_ROW-1:0];
    assign target_row = target_read[`NC_ROW-1:0];
endmodule

`default_nettype wire
