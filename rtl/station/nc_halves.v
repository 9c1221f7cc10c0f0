// A memory whose halves are read at one place both: who reads says one cycle later which it wanted.
`default_nettype none

module nc_halves #(
    // Both halves have 2 to the power of this words.
    parameter ADDRESS = 12
) (
    input  wire               clk,
    input  wire               write,
    input  wire [ADDRESS-1:0] write_address,
    input  wire [31:0]        write_data,
    input  wire [ADDRESS-2:0] read_address,
    // Of what was asked for in the cycle before.
    input  wire               high,
    output wire [31:0]        read_data
);
    wire [31:0] low_word, high_word;
    wire writes_high = write_address[ADDRESS-1];
    nc_memory #(.WIDTH(32), .ADDRESS(ADDRESS - 1)) low_half (
        .clk(clk), .write(write && !writes_high), .write_address(write_address[ADDRESS-2:0]),
        .write_data(write_data), .read_address(read_address), .read_data(low_word)
    );
    nc_memory #(.WIDTH(32), .ADDRESS(ADDRESS - 1)) high_half (
        .clk(clk), .write(write && writes_high), .write_address(write_address[ADDRESS-2:0]),
        .write_data(write_data), .read_address(read_address), .read_data(high_word)
    );
    assign read_data = high ? high_word : low_word;
endmodule

`default_nettype wire
