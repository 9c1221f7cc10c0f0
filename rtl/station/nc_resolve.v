// Makes rows of the program of its words, when they are loaded: looks up what identifiers mean, and
// finds the traps that do not depend on the execution. So an instruction needs no table when it is
// issued. Tables are loaded before the program.
//
// `load` is held until `done`, 9 cycles later.
`default_nettype none
`include "nc_table.vh"
`include "nc_row.vh"

module nc_resolve (
    input  wire                clk,
    input  wire                rst,

    input  wire                load,
    input  wire [63:0]         word,
    output wire                done,

    // The table of buffers: the row of an identifier is there three cycles later, as here: whether
    // there is such a buffer, {input, words, address}.
    output wire [7:0]          buffer,
    input  wire                buffer_known,
    input  wire [21:0]         buffer_row,
    // The table of messages likewise: {known, words, address}.
    output wire [7:0]          message,
    input  wire [21:0]         message_row,

    // Written when it is done.
    output reg  [`NC_ROW-1:0]  row
);
    wire [5:0] operation;
    wire [11:0] address;
    wire [7:0] id;
    wire master, negated;
    wire [4:0] condition;
    wire [31:0] immediate;
    wire [3:0] word_error;
    nc_decode decode (
        .word(word), .operation(operation), .address(address), .id(id), .master(master),
        .negated(negated), .condition(condition), .immediate(immediate), .error(word_error)
    );

    // The left buffer is asked for at first, then the right one.
    reg [3:0] step;
    always @(posedge clk) begin
        if (rst || !load || done) step <= 4'd0;
        else step <= step + 4'd1;
    end
    assign done = step == 4'd9;
    wire is_receive = operation == `NC_RECEIVE;
    assign buffer = step[0] ? immediate[15:8] : is_receive ? immediate[7:0] : id;
    assign message = id;

    reg left_known, left_is_input;
    reg [8:0] left_words;
    reg [11:0] left_address;
    reg right_known, right_is_input;
    reg [8:0] right_words;
    reg [11:0] right_address;
    wire message_known = message_row[21];
    wire [8:0] message_words = message_row[20:12];
    always @(posedge clk) begin
        if (step == 4'd3) begin
            left_known <= buffer_known;
            {left_is_input, left_words, left_address} <= buffer_row;
        end
        if (step == 4'd4) begin
            right_known <= buffer_known;
            {right_is_input, right_words, right_address} <= buffer_row;
        end
    end

    wire is_branch = operation == `NC_BRANCH;
    wire compares = is_branch && condition[4];
    wire compares_words = compares && condition[3];
    wire [7:0] left_index = immediate[31:24];
    wire [7:0] right_index = immediate[7:0];

    reg left_outside, right_outside, other_length;
    always @(posedge clk) begin
        left_outside <= {1'b0, left_index} >= left_words;
        right_outside <= {1'b0, right_index} >= right_words;
        other_length <= left_words != message_words;
    end

    // Of several traps the first in the definition's order.
    reg [3:0] trap;
    always @* begin
        trap = word_error;
        if (word_error == `NC_TRAP_NONE) begin
            case (operation)
                `NC_CREATE:
                    if (!left_known) trap = `NC_TRAP_BUFFER;
                `NC_SEND:
                    if (!message_known) trap = `NC_TRAP_MESSAGE;
                `NC_RECEIVE:
                    if (!message_known) trap = `NC_TRAP_MESSAGE;
                    else if (!left_known || !left_is_input) trap = `NC_TRAP_BUFFER;
                    else if (other_length) trap = `NC_TRAP_LENGTH;
                `NC_BRANCH:
                    if (condition == `NC_FRESH) begin
                        if (!message_known) trap = `NC_TRAP_MESSAGE;
                    end else if (compares) begin
                        if (!left_known) trap = `NC_TRAP_BUFFER;
                        else if (left_outside) trap = `NC_TRAP_INDEX;
                        else if (compares_words && !right_known) trap = `NC_TRAP_BUFFER;
                        else if (compares_words && right_outside) trap = `NC_TRAP_INDEX;
                    end
                default: ;
            endcase
        end
    end

    wire is_word = word_error == `NC_TRAP_NONE;
    reg [3:0] found_trap;
    always @(posedge clk) found_trap <= trap;
    wire is_good = found_trap == `NC_TRAP_NONE;
    wire is_master = operation == `NC_SYNC && master;
    wire [11:0] left_word = left_address + (compares ? {4'd0, left_index} : 12'd0);
    wire [11:0] right_word = right_address + {4'd0, right_index};
    reg [31:0] operand;
    always @* begin
        operand = immediate;
        if (compares_words) operand = {11'd0, !right_is_input, immediate[15:8], right_word};
        else if (compares) operand = {{8{immediate[23]}}, immediate[23:0]};
        else if (is_receive) operand = {20'd0, message_row[11:0]};
    end

    always @(posedge clk) begin
        row[`NC_ROW_IMMEDIATE] <= operand;
        row[`NC_ROW_ADDRESS] <= address;
        row[`NC_ROW_WORDS] <= operation == `NC_CREATE ? left_words : message_words;
        row[`NC_ROW_LEFT] <= left_word;
        row[`NC_ROW_LEFT_ID] <= is_receive ? immediate[7:0] : id;
        row[`NC_ROW_LEFT_BANKED] <= !left_is_input;
        row[`NC_ROW_ID] <= id;
        row[`NC_ROW_CONDITION] <= condition;
        row[`NC_ROW_NEGATED] <= negated;
        row[`NC_ROW_NOP] <= is_good && operation == `NC_NOP;
        row[`NC_ROW_CREATE] <= is_good && operation == `NC_CREATE;
        row[`NC_ROW_SEND] <= is_good && operation == `NC_SEND;
        row[`NC_ROW_RECEIVE] <= is_good && is_receive;
        row[`NC_ROW_FUTURE] <= is_good && operation == `NC_FUTURE;
        row[`NC_ROW_HALT] <= is_good && operation == `NC_HALT;
        row[`NC_ROW_MASTER] <= is_good && is_master;
        row[`NC_ROW_SLAVE] <= is_good && operation == `NC_SYNC && !master;
        row[`NC_ROW_BRANCH] <= is_good && is_branch;
        row[`NC_ROW_TRAP] <= found_trap;
        row[`NC_ROW_TRAPS] <= !is_good;
        row[`NC_ROW_WAITS_DATA] <= is_word && operation == `NC_CREATE;
        row[`NC_ROW_WAITS_SEND] <= is_word && (operation == `NC_SEND || is_master);
        row[`NC_ROW_ZERO] <= immediate == 32'd0;
        row[`NC_ROW_ONE] <= immediate == 32'd1;
    end
endmodule

`default_nettype wire
