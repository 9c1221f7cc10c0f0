// Data buffers, their table, and the send buffer.
//
// A buffer that the application writes has two banks behind each other in the memory: the complete
// one, which everybody sees, and the one that is written. `commit` changes them. A buffer that
// `receive` writes has one. The memory is there twice: one copy is read by `create` and for left
// operands of guards, which go first, the other for right operands and by the application.
`default_nettype none
`include "nc_table.vh"

module nc_buffers #(
    // The memory has 2 to the power of this words.
    parameter ADDRESS = 12
) (
    input  wire               clk,
    input  wire               rst,

    // Before the start: rows of the table, {input, words, address of the first}, and words.
    input  wire               load_row,
    input  wire [7:0]         load_buffer,
    input  wire               load_word,
    input  wire [ADDRESS-1:0] load_address,
    input  wire [31:0]        load_value,
    input  wire [8:0]         buffers,

    // The core's: see there.
    input  wire [7:0]         left_buffer,
    input  wire [7:0]         right_buffer,
    output wire               left_known,
    output wire               left_is_input,
    output wire [8:0]         left_words,
    output wire               right_known,
    output wire [8:0]         right_words,
    input  wire               does_create,
    input  wire               compares,
    input  wire [7:0]         left_index,
    input  wire [7:0]         right_index,
    output wire [31:0]        left_value,
    output wire [31:0]        right_value,

    // The transmitter's.
    input  wire [8:0]         word_index,
    output wire [31:0]        word,

    // `receive` begins to copy; its words come one behind the other, the last one with `copy_ends`.
    input  wire               copy_begins,
    input  wire               copies,
    input  wire               copy_ends,
    input  wire [31:0]        copied_word,

    // The application: a request is held until `ready`. One that is not possible is `refused`.
    input  wire               reads,
    input  wire               writes,
    input  wire               commits,
    input  wire [7:0]         wanted_buffer,
    input  wire [8:0]         wanted_index,
    input  wire [31:0]        written_value,
    output wire               ready,
    output wire               refused,
    output wire               committed,
    output wire [31:0]        read_value
);
    localparam ROW = 10 + ADDRESS;

    // Rows of the buffers that the word names, and of the one that the application wants.
    wire [ROW-1:0] row = load_value[ROW-1:0];
    // Right operands are only read: what kind of buffer they are of does not matter.
    wire [ROW-1:0] left_row, wanted_row;
    wire [ROW-2:0] right_row;
    nc_memory #(.WIDTH(ROW), .ADDRESS(8)) left_table (
        .clk(clk), .write(load_row), .write_address(load_buffer), .write_data(row),
        .read_address(left_buffer), .read_data(left_row)
    );
    nc_memory #(.WIDTH(ROW - 1), .ADDRESS(8)) right_table (
        .clk(clk), .write(load_row), .write_address(load_buffer), .write_data(row[ROW-2:0]),
        .read_address(right_buffer), .read_data(right_row)
    );
    nc_memory #(.WIDTH(ROW), .ADDRESS(8)) wanted_table (
        .clk(clk), .write(load_row), .write_address(load_buffer), .write_data(row),
        .read_address(wanted_buffer), .read_data(wanted_row)
    );

    // Which bank of each buffer is complete, in the cycle of the issue.
    reg [255:0] banks;
    reg left_bank, right_bank, left_there, right_there;
    reg [7:0] issued_left;
    always @(posedge clk) begin
        left_bank <= banks[left_buffer];
        right_bank <= banks[right_buffer];
        left_there <= {1'b0, left_buffer} < buffers;
        right_there <= {1'b0, right_buffer} < buffers;
        issued_left <= left_buffer;
    end
    assign left_known = left_there;
    assign left_is_input = left_row[ROW-1];
    assign left_words = left_row[ROW-2 -: 9];
    assign right_known = right_there;
    assign right_words = right_row[ROW-2 -: 9];
    wire [ADDRESS-1:0] left_address = left_row[ADDRESS-1:0]
        + (left_bank ? {{(ADDRESS - 9){1'b0}}, left_words} : {ADDRESS{1'b0}});
    wire [ADDRESS-1:0] right_address = right_row[ADDRESS-1:0]
        + (right_bank ? {{(ADDRESS - 9){1'b0}}, right_words} : {ADDRESS{1'b0}});

    // `create`: an address in each cycle that guards leave, and its word one later.
    reg fills;
    reg [ADDRESS-1:0] fill_address;
    reg [8:0] fill_index, fill_left;
    reg [7:0] fill_buffer;
    reg fill_bank;
    reg filled;
    reg [8:0] filled_index;
    wire fill_reads = fills && !compares;
    always @(posedge clk) begin
        if (rst) begin
            fills <= 1'b0;
            filled <= 1'b0;
        end else begin
            filled <= fill_reads && !does_create;
            if (does_create) fills <= 1'b1;
            else if (fill_reads && fill_left == 9'd1) fills <= 1'b0;
        end
        filled_index <= fill_index;
        if (does_create) begin
            fill_address <= left_address;
            fill_index <= 9'd0;
            fill_left <= left_words;
            fill_buffer <= issued_left;
            fill_bank <= left_bank;
        end else if (fill_reads) begin
            fill_address <= fill_address + {{(ADDRESS - 1){1'b0}}, 1'b1};
            fill_index <= fill_index + 9'd1;
            fill_left <= fill_left - 9'd1;
        end
    end

    // What `receive` writes, and where.
    reg copying;
    reg [ADDRESS-1:0] copy_address;
    reg [7:0] copy_buffer;
    always @(posedge clk) begin
        if (rst) copying <= 1'b0;
        else if (copy_begins) copying <= 1'b1;
        else if (copy_ends) copying <= 1'b0;
        if (copy_begins) begin
            copy_address <= left_address;
            copy_buffer <= issued_left;
        end else if (copies) copy_address <= copy_address + {{(ADDRESS - 1){1'b0}}, 1'b1};
    end

    // The application: the row of its buffer is there in the second cycle of a request, what it
    // reads in the one behind that in which nothing else wanted the memory.
    reg row_there, read_there, wanted_known;
    wire requests = reads || writes || commits;
    wire wanted_is_input = wanted_row[ROW-1];
    wire [8:0] wanted_words = wanted_row[ROW-2 -: 9];
    wire hidden_bank = !banks[wanted_buffer];
    wire is_pinned = fills && fill_buffer == wanted_buffer && fill_bank == hidden_bank;
    wire is_copied = (copying && copy_buffer == wanted_buffer)
        || (copy_begins && issued_left == wanted_buffer);
    wire is_possible = wanted_known && (commits || wanted_index < wanted_words)
        && !(wanted_is_input && !reads);
    wire bank_shift = writes ? hidden_bank : banks[wanted_buffer];
    wire [ADDRESS-1:0] wanted_address = wanted_row[ADDRESS-1:0]
        + (bank_shift ? {{(ADDRESS - 9){1'b0}}, wanted_words} : {ADDRESS{1'b0}})
        + {{(ADDRESS - 9){1'b0}}, wanted_index};
    wire write_now = row_there && is_possible && writes && !is_pinned && !copies;
    wire commit_now = row_there && is_possible && commits;
    wire read_now = row_there && is_possible && reads && !read_there && !compares && !is_copied;
    assign refused = row_there && !is_possible;
    assign ready = refused || write_now || commit_now || read_there;
    assign committed = commit_now;
    always @(posedge clk) begin
        if (rst) begin
            row_there <= 1'b0;
            read_there <= 1'b0;
            banks <= 256'd0;
        end else begin
            row_there <= requests && !ready;
            read_there <= read_now;
            if (commit_now) banks[wanted_buffer] <= hidden_bank;
        end
        wanted_known <= {1'b0, wanted_buffer} < buffers;
    end

    wire memory_write = load_word || copies || write_now;
    wire [ADDRESS-1:0] memory_address =
        load_word ? load_address : copies ? copy_address : wanted_address;
    wire [31:0] memory_value = load_word ? load_value : copies ? copied_word : written_value;
    wire [ADDRESS-1:0] left_read =
        compares ? left_address + {{(ADDRESS - 8){1'b0}}, left_index} : fill_address;
    wire [ADDRESS-1:0] right_read =
        compares ? right_address + {{(ADDRESS - 8){1'b0}}, right_index} : wanted_address;
    nc_memory #(.WIDTH(32), .ADDRESS(ADDRESS)) left_memory (
        .clk(clk), .write(memory_write), .write_address(memory_address),
        .write_data(memory_value), .read_address(left_read), .read_data(left_value)
    );
    nc_memory #(.WIDTH(32), .ADDRESS(ADDRESS)) right_memory (
        .clk(clk), .write(memory_write), .write_address(memory_address),
        .write_data(memory_value), .read_address(right_read), .read_data(right_value)
    );
    assign read_value = right_value;

    nc_memory #(.WIDTH(32), .ADDRESS(9)) send_buffer (
        .clk(clk), .write(filled), .write_address(filled_index), .write_data(left_value),
        .read_address(word_index), .read_data(word)
    );
endmodule

`default_nettype wire
