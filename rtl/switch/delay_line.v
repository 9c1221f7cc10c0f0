// Gives what comes in CYCLES cycles later. CYCLES is at least 2.
//
// A memory with a registered read, written in every cycle. Until it has been written as often as
// it delays, the output is 0: what the memory held before the reset does not leave.
`default_nettype none

module delay_line #(
    parameter WIDTH = 10,
    parameter CYCLES = 16,
    parameter ADDRESS_BITS = 8  // 2**ADDRESS_BITS is at least CYCLES
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [WIDTH-1:0] in,
    output wire [WIDTH-1:0] out
);
    localparam [31:0] LAST = CYCLES - 1;
    localparam [ADDRESS_BITS-1:0] BEHIND = LAST[ADDRESS_BITS-1:0];

    reg [WIDTH-1:0] memory [0:(1 << ADDRESS_BITS)-1];
    reg [ADDRESS_BITS-1:0] address;
    reg [ADDRESS_BITS-1:0] filled;
    reg [WIDTH-1:0] stored;
    reg whole;

    wire [ADDRESS_BITS-1:0] read_address = address - BEHIND;

    assign out = whole ? stored : {WIDTH{1'b0}};

    always @(posedge clk) begin
        memory[address] <= in;
        stored <= memory[read_address];
    end

    always @(posedge clk) begin
        address <= address + {{ADDRESS_BITS-1{1'b0}}, 1'b1};
        whole <= filled == BEHIND;
        if (filled != BEHIND)
            filled <= filled + {{ADDRESS_BITS-1{1'b0}}, 1'b1};
        if (rst) begin
            address <= {ADDRESS_BITS{1'b0}};
            filled <= {ADDRESS_BITS{1'b0}};
            whole <= 1'b0;
        end
    end
endmodule

`default_nettype wire
