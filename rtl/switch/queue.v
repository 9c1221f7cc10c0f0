// A queue in a memory with a registered read, whose oldest entry is always on the output.
//
// Timing: what is pushed in cycle t is on the output in t + 2 if the queue was empty. Entries can
// be pushed and popped in every cycle. `push` while there is no room is ignored, and `pop` while
// `valid` is low too.
`default_nettype none

module queue #(
    parameter WIDTH = 16,
    parameter ADDRESS_BITS = 6
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  push,
    input  wire [WIDTH-1:0]      in,
    output wire [ADDRESS_BITS:0] room,   // entries that can still be pushed
    output wire                  empty,  // nothing is in, on the output or before it
    input  wire                  pop,
    output reg                   valid,
    output reg  [WIDTH-1:0]      out
);
    localparam [ADDRESS_BITS:0] SIZE = 1 << ADDRESS_BITS;
    localparam [ADDRESS_BITS:0] ONE = 1;

    reg [WIDTH-1:0] memory [0:(1 << ADDRESS_BITS)-1];
    reg [ADDRESS_BITS:0] written;
    reg [ADDRESS_BITS:0] taken;

    wire [ADDRESS_BITS:0] taken_next = pop && valid ? taken + ONE : taken;
    wire accept = push && room != {ADDRESS_BITS+1{1'b0}};

    assign room = SIZE - (written - taken);
    assign empty = written == taken;

    always @(posedge clk) begin
        if (accept)
            memory[written[ADDRESS_BITS-1:0]] <= in;
        out <= memory[taken_next[ADDRESS_BITS-1:0]];
    end

    always @(posedge clk) begin
        if (accept)
            written <= written + ONE;
        taken <= taken_next;
        valid <= written != taken_next;
        if (rst) begin
            written <= {ADDRESS_BITS+1{1'b0}};
            taken <= {ADDRESS_BITS+1{1'b0}};
            valid <= 1'b0;
        end
    end
endmodule

`default_nettype wire
