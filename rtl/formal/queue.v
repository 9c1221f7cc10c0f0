// In place of a port's queue: one that may say and give anything.
module queue #(
    parameter WIDTH = 10,
    parameter ADDRESS_BITS = 11
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  push,
    input  wire [WIDTH-1:0]      in,
    output wire [ADDRESS_BITS:0] room,
    output wire                  empty,
    input  wire                  pop,
    output wire                  valid,
    output wire [WIDTH-1:0]      out
);
    (* anyseq *) reg [ADDRESS_BITS:0] any_room;
    (* anyseq *) reg any_empty;
    (* anyseq *) reg any_valid;
    (* anyseq *) reg [WIDTH-1:0] any_out;
    assign room = any_room;
    assign empty = any_empty;
    assign valid = any_valid;
    assign out = any_out;
endmodule
