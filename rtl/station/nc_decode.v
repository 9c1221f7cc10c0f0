// What a word is: combinational. A word that is no instruction has an `error`.
`default_nettype none
`include "nc_table.vh"

module nc_decode (
    input  wire [63:0] word,
    output wire [5:0]  operation,
    output wire [11:0] address,
    output wire [7:0]  id,
    output wire        master,
    output wire        negated,
    output wire [4:0]  condition,
    output wire [31:0] immediate,
    output reg  [3:0]  error
);
    wire [5:0] mode = word[37:32];
    wire address_used = |word[57:46];
    wire id_used = |word[45:38];
    wire mode_used = |mode;
    wire immediate_used = |word[31:0];

    assign operation = word[63:58];
    assign address = word[57:46];
    assign id = word[45:38];
    assign immediate = word[31:0];
    assign master = mode == `NC_MASTER;
    assign negated = mode[5];
    assign condition = mode[4:0];

    // The first error of a word, in the order in which its fields are looked at.
    reg [3:0] guard_error;
    always @* begin
        guard_error = `NC_TRAP_NONE;
        case (condition)
            `NC_COUNT:
                if (|id[7:4] || !immediate_used) guard_error = `NC_TRAP_OPERAND;
            `NC_FLAG:
                if (|id[7:4]) guard_error = `NC_TRAP_OPERAND;
                else if (immediate_used) guard_error = `NC_TRAP_RESERVED;
            `NC_FRESH:
                if (immediate_used) guard_error = `NC_TRAP_RESERVED;
            `NC_ALWAYS, `NC_RECEIVED, `NC_SYNC_TIMEOUT, `NC_OVERRUN, `NC_TRANSMITTING, `NC_LINK_UP:
                if (id_used || immediate_used) guard_error = `NC_TRAP_RESERVED;
            default:
                if (!condition[4] || condition[2:0] >= `NC_RELATIONS)
                    guard_error = `NC_TRAP_GUARD;
                else if (condition[3] && |immediate[23:16]) guard_error = `NC_TRAP_RESERVED;
        endcase
    end

    reg reserved;
    always @* begin
        case (operation)
            `NC_CREATE, `NC_SEND: reserved = address_used || mode_used || immediate_used;
            `NC_RECEIVE: reserved = address_used || mode_used || |immediate[31:8];
            `NC_FUTURE: reserved = id_used || mode_used;
            `NC_SYNC:
                reserved = address_used || id_used || |mode[5:1] || (mode[0] && immediate_used);
            `NC_NOP, `NC_HALT: reserved = address_used || id_used || mode_used || immediate_used;
            default: reserved = 1'b0;
        endcase
        if (operation > `NC_BRANCH) error = `NC_TRAP_OPERATION;
        else if (operation == `NC_BRANCH) error = guard_error;
        else error = reserved ? `NC_TRAP_RESERVED : `NC_TRAP_NONE;
    end
endmodule

`default_nettype wire
