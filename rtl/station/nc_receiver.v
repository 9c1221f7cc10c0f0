// The auto-receiver: takes frames of stations out of the stream, stores data in receive buffers,
// and copies them for `receive`.
//
// A receive buffer has two banks (BANKS = 2): the last complete frame, and the one that comes. With
// BANKS = 1 a frame overwrites the one before it while it comes, as in the paper; the program then
// has to see to it that no `receive` meets that (the verifier's property "reception").
//
// With the last octet of a frame in the stream in cycle u it is complete in cycle
// u + 1 + NC_RECEIVE_STORE; a frame that begins a round is one cycle behind its EtherType's last
// octet. No octet that comes stops the receiver: each burst ends by itself.
`default_nettype none
`include "nc_table.vh"

module nc_receiver #(
    parameter ADDRESS = 12,
    parameter BANKS = 2
) (
    input  wire        clk,
    input  wire        rst,

    // Before the start: rows of the table of messages, {known, words, address of the first}.
    input  wire        load_row,
    input  wire [7:0]  load_message,
    input  wire [ADDRESS+9:0] load_value,

    // Of rx_frame: see there.
    input  wire        octet_valid,
    input  wire [7:0]  octet,
    input  wire [11:0] index,
    input  wire [47:0] destination,
    input  wire        has_tag,
    input  wire        type_strobe,
    input  wire [15:0] ethertype,
    input  wire        sof,
    input  wire        eof,
    input  wire        fcs_ok,
    input  wire        er_seen,
    input  wire [11:0] length,

    // With `eof`: it is whole, and no frame of a station.
    output wire        is_other,

    // A frame that begins a round has come.
    output wire        strobe,

    // The core's. What a message is is there one cycle behind its identifier.
    input  wire [7:0]  message,
    output wire        message_known,
    output wire [8:0]  message_words,
    output wire        fresh,
    input  wire        does_receive,
    input  wire        issued_fresh,
    input  wire [7:0]  issued_message,

    // The copy.
    output wire        copy_begins,
    output reg         copies,
    output wire        copy_ends,
    output wire [31:0] copied_word,

    // Counted, in the cycle in which the frame is complete or would have been.
    output reg         counts_received,
    output reg         counts_overwritten,
    output reg         counts_unknown,
    output reg         counts_wrong_length,
    output reg         counts_damaged,
    // Frames of no station, with a right check sequence.
    output reg         counts_malformed,
    output reg         counts_runt,
    output reg         counts_long,

    // For those who watch: a word has been stored; it was the last one of its frame.
    output wire        trace_stored,
    output wire        trace_stored_last
);
    localparam ROW = 10 + ADDRESS;
    localparam [11:0] SHORTEST = 12'd64, LONGEST = 12'd1522;
    localparam [3:0] VERDICT_NONE = 4'd0, STORED = 4'd1, UNKNOWN = 4'd2, WRONG_LENGTH = 4'd3,
        DAMAGED = 4'd4, MALFORMED = 4'd5, RUNT = 4'd6, LONG = 4'd7, OTHER = 4'd8;
    // eof is one cycle late; the counters' registers are the last one.
    localparam DELAY = `NC_RECEIVE_STORE - 2;

    wire is_group = destination == `NC_GROUP;
    assign strobe = type_strobe && is_group && ethertype == `NC_ETHERTYPE_ROUND;

    // The row of the message that `receive` names, and of the one that comes.
    wire [ROW-1:0] named_row, coming_row;
    reg [7:0] coming;
    nc_memory #(.WIDTH(ROW), .ADDRESS(8)) named_table (
        .clk(clk), .write(load_row), .write_address(load_message), .write_data(load_value),
        .read_address(message), .read_data(named_row)
    );
    nc_memory #(.WIDTH(ROW), .ADDRESS(8)) coming_table (
        .clk(clk), .write(load_row), .write_address(load_message), .write_data(load_value),
        .read_address(coming), .read_data(coming_row)
    );
    assign message_known = named_row[ROW-1];
    assign message_words = named_row[ROW-2 -: 9];
    wire coming_known = coming_row[ROW-1];
    wire [8:0] coming_words = coming_row[ROW-2 -: 9];

    // The header behind the EtherType, and words behind it.
    wire [11:0] header_at = has_tag ? 12'd18 : 12'd14;
    reg is_data, is_round;
    // Octets behind the EtherType, from 0; it stays at its end.
    reg [11:0] place;
    reg header_wrong;
    reg [15:0] coming_length;
    reg [23:0] collected;
    reg banks_seen;
    // The complete bank of each message.
    reg [255:0] banks;
    reg [255:0] fresh_bits;

    wire in_payload = octet_valid && (is_data || is_round) && index >= header_at;
    wire [9:0] word_number = place[11:2] - 10'd1;
    wire fits = coming_known && coming_length == {7'd0, coming_words};
    wire stores = in_payload && is_data && place >= 12'd4 && place[1:0] == 2'd3 && fits
        && word_number < {1'b0, coming_words};
    wire [ADDRESS-1:0] bank_shift =
        BANKS == 2 && !banks_seen ? {{(ADDRESS - 9){1'b0}}, coming_words} : {ADDRESS{1'b0}};
    wire [ADDRESS-1:0] store_address =
        coming_row[ADDRESS-1:0] + bank_shift + {{(ADDRESS - 10){1'b0}}, word_number};
    assign trace_stored = stores;
    assign trace_stored_last = stores && word_number + 10'd1 == {1'b0, coming_words};

    always @(posedge clk) begin
        // A frame that began before the start is none.
        if (rst || sof) begin
            is_data <= 1'b0;
            is_round <= 1'b0;
            header_wrong <= 1'b0;
            coming_length <= 16'd0;
            place <= 12'd0;
        end else if (type_strobe) begin
            is_data <= is_group && ethertype == `NC_ETHERTYPE_DATA;
            is_round <= is_group && ethertype == `NC_ETHERTYPE_ROUND;
        end
        if (in_payload) begin
            if (place != 12'd4095) place <= place + 12'd1;
            collected <= {collected[15:0], octet};
            case (place)
                12'd0: if (octet != 8'd0) header_wrong <= 1'b1;
                12'd1: begin
                    coming <= octet;
                    if (is_round && octet != 8'd0) header_wrong <= 1'b1;
                end
                12'd2: coming_length[15:8] <= octet;
                12'd3: begin
                    coming_length[7:0] <= octet;
                    banks_seen <= banks[coming];
                end
                default: ;
            endcase
        end
    end

    // The verdict when the frame is over. The words have to be there before the check sequence.
    wire [13:0] payload_end = {2'd0, header_at} + 14'd8 + {3'd0, coming_length[8:0], 2'b00};
    wire length_wrong = is_round ? coming_length != 16'd1
        : coming_length == 16'd0 || coming_length > {7'd0, `NC_FRAME_WORDS};
    wire is_malformed = header_wrong || length_wrong || payload_end > {2'd0, length};
    reg [3:0] verdict;
    always @* begin
        if (er_seen || !fcs_ok) verdict = DAMAGED;
        else if (length < SHORTEST) verdict = RUNT;
        else if (length > LONGEST) verdict = LONG;
        else if (!is_data && !is_round) verdict = OTHER;
        else if (is_malformed) verdict = MALFORMED;
        else if (is_round) verdict = OTHER;
        else if (!coming_known) verdict = UNKNOWN;
        else verdict = fits ? STORED : WRONG_LENGTH;
    end

    assign is_other = verdict == OTHER && !is_round;

    // Several short bursts may be on their way to their instant, but one frame of data only.
    reg [4*DELAY-1:0] delayed;
    reg [7:0] completed;
    wire [3:0] due = delayed[4*DELAY-1 -: 4];
    wire commits = due == STORED;
    always @(posedge clk) begin
        if (rst) delayed <= {(4 * DELAY){1'b0}};
        else delayed <= {delayed[4*DELAY-5:0], eof ? verdict : VERDICT_NONE};
        if (eof && verdict == STORED) completed <= coming;
    end

    // `receive` clears what was fresh at its issue, a cycle ago. A frame that was completed in the
    // next cycle is another one.
    reg committed;
    reg [7:0] last_committed;
    reg was_fresh, was_cleared;
    wire clears = does_receive && issued_fresh;
    always @(posedge clk) begin
        if (rst) begin
            banks <= 256'd0;
            fresh_bits <= 256'd0;
            committed <= 1'b0;
        end else begin
            committed <= commits;
            if (clears && !(committed && last_committed == issued_message))
                fresh_bits[issued_message] <= 1'b0;
            if (commits) begin
                fresh_bits[completed] <= 1'b1;
                if (BANKS == 2) banks[completed] <= !banks[completed];
            end
        end
        last_committed <= completed;
        was_fresh <= fresh_bits[completed];
        was_cleared <= clears && issued_message == completed;
    end
    assign fresh = fresh_bits[message];

    // Of the frame that was completed in this cycle: whether it replaced one.
    wire overwrites = committed && was_fresh && !was_cleared
        && !(clears && issued_message == last_committed);
    always @(posedge clk) begin
        counts_received <= !rst && commits;
        counts_overwritten <= !rst && overwrites;
        counts_unknown <= !rst && due == UNKNOWN;
        counts_wrong_length <= !rst && due == WRONG_LENGTH;
        counts_damaged <= !rst && due == DAMAGED;
        counts_malformed <= !rst && due == MALFORMED;
        counts_runt <= !rst && due == RUNT;
        counts_long <= !rst && due == LONG;
    end

    // The copy: addresses from the second cycle behind the issue on, words from the third.
    reg named_bank;
    reg reading;
    reg [ADDRESS-1:0] copy_address;
    reg [8:0] copy_left;
    reg copy_last;
    assign copy_begins = clears;
    assign copy_ends = copies && copy_last;
    always @(posedge clk) begin
        named_bank <= BANKS == 2 && banks[message];
        if (rst) begin
            reading <= 1'b0;
            copies <= 1'b0;
        end else begin
            copies <= reading;
            if (copy_begins) reading <= 1'b1;
            else if (copy_left == 9'd1) reading <= 1'b0;
        end
        copy_last <= copy_left == 9'd1;
        if (copy_begins) begin
            copy_address <= named_row[ADDRESS-1:0]
                + (named_bank ? {{(ADDRESS - 9){1'b0}}, message_words} : {ADDRESS{1'b0}});
            copy_left <= message_words;
        end else if (reading) begin
            copy_address <= copy_address + {{(ADDRESS - 1){1'b0}}, 1'b1};
            copy_left <= copy_left - 9'd1;
        end
    end

    nc_memory #(.WIDTH(32), .ADDRESS(ADDRESS)) memory (
        .clk(clk), .write(stores), .write_address(store_address),
        .write_data({collected, octet}), .read_address(copy_address), .read_data(copied_word)
    );
endmodule

`default_nettype wire
