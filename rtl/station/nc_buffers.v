// Data buffers and the send buffer.
//
// A buffer that the application writes has two banks: the complete one, which everybody sees, and
// the one that is written. `commit` changes them. One is where the table says, the other one half
// the memory further. A buffer that `receive` writes has one. The memory is there twice: one copy
// is read by `create` and for left operands of guards, which go first, the other one for right
// operands, which go first, and by the application.
`default_nettype none
`include "nc_table.vh"
`include "nc_row.vh"

module nc_buffers #(
    // The memory has 2 to the power of this words.
    parameter ADDRESS = 12
) (
    input  wire               clk,
    input  wire               rst,

    // Before the start: words.
    input  wire               load_word,
    input  wire [ADDRESS-1:0] load_address,

    // The core's: see there.
    // What of a row is for others is not used.
    // verilator lint_off UNUSEDSIGNAL
    input  wire [`NC_ROW-1:0] current,
    // verilator lint_on UNUSEDSIGNAL
    input  wire               may_compare,
    input  wire               does_create,
    output reg  [31:0]        left_value,
    output reg  [31:0]        right_value,

    // The transmitter's: the word of an index is there two cycles later.
    input  wire [8:0]         word_index,
    output reg  [31:0]        word,

    // A `receive` is issued; one cycle later, that it copies nothing. Its words come one behind the
    // other, the last one with `copy_ends`.
    input  wire               does_receive,
    input  wire               copies_nothing,
    input  wire               copies,
    input  wire               copy_ends,
    input  wire [31:0]        copied_word,

    // The application: a request is held until `ready`. One that is not possible is `refused`. The
    // row of its buffer is there two cycles behind its identifier.
    input  wire               reads,
    input  wire               writes,
    input  wire               commits,
    input  wire [7:0]         wanted_buffer,
    input  wire [8:0]         wanted_index,
    input  wire [31:0]        written_value,
    input  wire               wanted_known,
    input  wire [21:0]        wanted_row,
    output wire               ready,
    output wire               refused,
    output wire               committed,
    output wire [31:0]        read_value
);
    localparam [ADDRESS-1:0] ONE = 1, HALF = 1 << (ADDRESS - 1);
    localparam TOP = ADDRESS - 1;

    // Which bank of each buffer is complete. What it was in the cycle of an issue is known one
    // cycle later: meanwhile both halves of the memory are read.
    reg [255:0] banks;
    wire [7:0] left_id = current[`NC_ROW_LEFT_ID];
    wire [11:0] left = current[`NC_ROW_LEFT];
    wire [11:0] right = current[`NC_RIGHT_ADDRESS];
    wire [8:0] words = current[`NC_ROW_WORDS];
    wire left_chosen, right_chosen;
    nc_select left_select (
        .clk(clk), .bits(banks), .number(left_id), .chosen(left_chosen)
    );
    nc_select right_select (
        .clk(clk), .bits(banks), .number(current[`NC_RIGHT_ID]), .chosen(right_chosen)
    );
    reg compared, with_constant;
    reg [31:0] constant;
    reg left_banked, right_banked, left_top, right_top;
    always @(posedge clk) begin
        compared <= may_compare;
        with_constant <= may_compare && !current[`NC_ROW_COMPARES_WORDS];
        constant <= current[`NC_ROW_IMMEDIATE];
        left_banked <= current[`NC_ROW_LEFT_BANKED];
        right_banked <= current[`NC_RIGHT_BANKED];
        left_top <= left[TOP];
        right_top <= right[TOP];
    end
    wire left_bank = left_banked && left_chosen;
    wire right_bank = right_banked && right_chosen;

    // `create`: an address in each cycle that guards leave, and its word two later.
    reg fills, fill_begins, filled_1, filled_2;
    reg [ADDRESS-1:0] fill_address;
    reg [8:0] fill_index, fill_left, filled_index_1, filled_index_2;
    reg [7:0] fill_buffer;
    reg fill_bank, fill_top;
    wire fill_reads = fills && !may_compare;
    always @(posedge clk) begin
        // What is still on its way of an earlier `create` is overwritten by the next one.
        filled_1 <= !rst && fill_reads && !does_create;
        filled_2 <= !rst && filled_1 && !does_create;
        fill_begins <= !rst && does_create;
        if (rst) fills <= 1'b0;
        else if (does_create) fills <= 1'b1;
        else if (fill_reads && fill_left == 9'd1) fills <= 1'b0;
        filled_index_1 <= fill_index;
        filled_index_2 <= filled_index_1;
        fill_top <= fill_address[TOP];
        if (fill_begins) fill_bank <= left_bank;
        if (does_create) begin
            fill_address <= left[ADDRESS-1:0];
            fill_index <= 9'd0;
            fill_left <= words;
            fill_buffer <= left_id;
        end else if (fill_reads) begin
            fill_address <= fill_address + ONE;
            fill_index <= fill_index + 9'd1;
            fill_left <= fill_left - 9'd1;
        end
    end

    // What `receive` writes, and where.
    reg copying, copy_begins;
    reg [ADDRESS-1:0] copy_address;
    reg [7:0] copy_buffer;
    always @(posedge clk) begin
        copy_begins <= !rst && does_receive;
        if (rst) copying <= 1'b0;
        else if (does_receive) copying <= 1'b1;
        else if (copies_nothing || copy_ends) copying <= 1'b0;
        if (does_receive) begin
            copy_address <= left[ADDRESS-1:0];
            copy_buffer <= left_id;
        end else if (copies) copy_address <= copy_address + ONE;
    end

    // The application: what its row means, and where its word is, is known in the 7th cycle of a
    // request. In the first cycle of a `create` or a copy it is not known yet whose it is.
    reg [5:0] asked;
    reg is_possible, wanted_is_input, hidden_bank, wanted_half;
    reg [ADDRESS-1:0] wanted_address, wanted_place;
    reg fill_is_same, copy_is_same;
    reg may_write, read_1, read_2, loads;
    wire wanted_chosen;
    nc_select wanted_select (
        .clk(clk), .bits(banks), .number(wanted_buffer), .chosen(wanted_chosen)
    );
    wire requests = reads || writes || commits;
    wire known = asked[5];
    wire is_pinned = fills && (fill_begins || (fill_is_same && fill_bank == hidden_bank));
    wire is_copied = copying && (copy_begins || copy_is_same);
    wire goes = known && is_possible;
    wire write_now = may_write && !is_pinned && !copies;
    wire commit_now = goes && commits;
    reg commits_late;
    wire read_now = goes && reads && !read_1 && !read_2 && !may_compare && !is_copied;
    assign refused = known && !is_possible;
    assign ready = refused || write_now || commit_now || (read_2 && reads);
    assign committed = commits_late;
    always @(posedge clk) begin
        if (rst) begin
            asked <= 6'd0;
            may_write <= 1'b0;
            commits_late <= 1'b0;
            read_1 <= 1'b0;
            read_2 <= 1'b0;
            banks <= 256'd0;
        end else begin
            asked <= requests && !ready ? {asked[4:0], 1'b1} : 6'd0;
            may_write <= goes && writes && !ready;
            read_1 <= read_now;
            // One that is given up is not answered.
            read_2 <= read_1 && reads;
            commits_late <= commit_now;
            if (commits_late) banks[wanted_buffer] <= hidden_bank;
        end
        is_possible <= wanted_known && (commits || wanted_index < wanted_row[20:12])
            && (reads || !wanted_row[21]);
        wanted_is_input <= wanted_row[21];
        wanted_address <= wanted_row[ADDRESS-1:0] + {{(ADDRESS - 9){1'b0}}, wanted_index};
        hidden_bank <= !wanted_chosen;
        wanted_half <= !wanted_is_input && (writes ? hidden_bank : !hidden_bank);
        wanted_place <= load_word ? load_address
            : wanted_address ^ (wanted_half ? HALF : {ADDRESS{1'b0}});
        loads <= load_word;
        fill_is_same <= fill_buffer == wanted_buffer;
        copy_is_same <= copy_buffer == wanted_buffer;
    end

    wire memory_write = loads || copies || write_now;
    wire [ADDRESS-1:0] memory_address = copies ? copy_address : wanted_place;
    wire [31:0] memory_value = copies ? copied_word : written_value;
    wire [31:0] left_read, right_read;
    nc_halves #(.ADDRESS(ADDRESS)) left_memory (
        .clk(clk), .write(memory_write), .write_address(memory_address),
        .write_data(memory_value),
        .read_address(may_compare ? left[TOP-1:0] : fill_address[TOP-1:0]),
        .high(compared ? left_top ^ left_bank : fill_top ^ fill_bank), .read_data(left_read)
    );
    nc_halves #(.ADDRESS(ADDRESS)) right_memory (
        .clk(clk), .write(memory_write), .write_address(memory_address),
        .write_data(memory_value),
        .read_address(may_compare ? right[TOP-1:0] : wanted_place[TOP-1:0]),
        .high(compared ? right_top ^ right_bank : wanted_place[TOP]), .read_data(right_read)
    );
    assign read_value = right_value;

    wire [31:0] send_read;
    nc_memory #(.WIDTH(32), .ADDRESS(9)) send_buffer (
        .clk(clk), .write(filled_2), .write_address(filled_index_2), .write_data(left_value),
        .read_address(word_index), .read_data(send_read)
    );
    always @(posedge clk) begin
        left_value <= left_read;
        right_value <= with_constant ? constant : right_read;
        word <= send_read;
    end
endmodule

`default_nettype wire
