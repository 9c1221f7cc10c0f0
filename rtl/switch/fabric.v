// Moves best-effort frames from inputs to outputs, word by word.
//
// Timing: in cycle i of four it is the turn of input i. What it does is said two cycles later, with
// `from` = i. A word has four octets, so each input moves as fast as its port receives
// and no input waits for another one.
`default_nettype none

module fabric (
    input  wire         clk,
    input  wire         rst,
    output wire [3:0]   turn,
    input  wire [3:0]   input_begin,
    input  wire [3:0]   input_word,
    input  wire [3:0]   input_end,
    input  wire [15:0]  input_outputs,
    input  wire [43:0]  input_length,
    input  wire [127:0] input_data,
    output reg  [1:0]   from,
    output reg  [3:0]   move_begin,  // at each output
    output reg          move_word,
    output reg          move_end,
    output reg  [10:0]  move_length,
    output reg  [31:0]  move_data
);
    reg [1:0] slot;
    wire [1:0] moving = slot - 2'd1;

    assign turn = 4'd1 << slot;

    always @(posedge clk) begin
        slot <= slot + 2'd1;
        from <= moving;
        move_begin <= input_begin[moving] ? input_outputs[moving * 4 +: 4] : 4'd0;
        move_word <= input_word[moving];
        move_end <= input_end[moving];
        move_length <= input_length[moving * 11 +: 11];
        move_data <= input_data[moving * 32 +: 32];
        if (rst) begin
            slot <= 2'd0;
            move_begin <= 4'd0;
            move_word <= 1'b0;
            move_end <= 1'b0;
        end
    end
endmodule

`default_nettype wire
