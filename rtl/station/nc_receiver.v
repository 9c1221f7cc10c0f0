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
`include "nc_row.vh"

module nc_receiver #(
    parameter ADDRESS = 12,
    parameter BANKS = 2
) (
    input  wire        clk,
    input  wire        rst,

    // Before the start: rows of the table of messages, {known, words, address of the first}.
    input  wire        load_row,
    input  wire [7:0]  load_message,
    input  wire [21:0] load_value,

    // Of rx_frame: see there.
    input  wire        octet_valid,
    input  wire [7:0]  octet,
    input  wire [11:0] index,
    input  wire [47:0] destination,
    input  wire        has_tag,
    input  wire        type_strobe,
    // The stream's octet, which is `octet` in the next cycle.
    input  wire        dv,
    input  wire [7:0]  data,
    input  wire        sof,
    input  wire        eof,
    input  wire        fcs_ok,
    input  wire        er_seen,
    input  wire [11:0] length,

    // With `eof`: it is whole, and no frame of a station.
    output wire        is_other,

    // A frame that begins a round has come.
    output reg         strobe,

    // The core's row, and that a `receive` of it is issued in this cycle.
    // What of a row is for others is not used.
    // verilator lint_off UNUSEDSIGNAL
    input  wire [`NC_ROW-1:0] current,
    // verilator lint_on UNUSEDSIGNAL
    input  wire        may_issue,
    input  wire        does_receive,
    // One cycle later: whether a frame of the row's message has come.
    output wire        fresh,

    // The copy.
    output reg         copies,
    output wire        copy_ends,
    output reg  [31:0] copied_word,

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
    localparam [11:0] SHORTEST = 12'd64, LONGEST = 12'd1522;
    localparam [3:0] VERDICT_NONE = 4'd0, STORED = 4'd1, UNKNOWN = 4'd2, WRONG_LENGTH = 4'd3,
        DAMAGED = 4'd4, MALFORMED = 4'd5, RUNT = 4'd6, LONG = 4'd7, OTHER = 4'd8;
    // eof is one cycle late, and so is the verdict; the registers of banks are the last one.
    localparam DELAY = `NC_RECEIVE_STORE - 3;
    localparam [ADDRESS-1:0] ONE = 1, HALF = 1 << (ADDRESS - 1);

    // A frame that began before the start is none of the program's.
    reg begun;
    always @(posedge clk) begin
        if (rst) begun <= 1'b0;
        else if (sof) begun <= 1'b1;
    end
    // With the EtherType's last octet they are known.
    reg is_group, round_type, data_type;
    always @(posedge clk) begin
        is_group <= destination == `NC_GROUP;
        round_type <= {octet, data} == `NC_ETHERTYPE_ROUND;
        data_type <= {octet, data} == `NC_ETHERTYPE_DATA;
    end
    wire is_next_type = octet_valid && dv && (index == 12'd12 || (index == 12'd16 && has_tag));
    always @(posedge clk)
        strobe <= !rst && is_next_type && is_group && begun
            && {octet, data} == `NC_ETHERTYPE_ROUND;

    // The row of the message that comes.
    wire [21:0] coming_read;
    reg [21:0] coming_row;
    reg [7:0] coming;
    nc_memory #(.WIDTH(22), .ADDRESS(8)) table_of_messages (
        .clk(clk), .write(load_row), .write_address(load_message), .write_data(load_value),
        .read_address(coming), .read_data(coming_read)
    );
    always @(posedge clk) coming_row <= coming_read;
    wire coming_known = coming_row[21];
    wire [8:0] coming_words = coming_row[20:12];

    // The header behind the EtherType, and words behind it.
    wire [11:0] type_end = has_tag ? 12'd17 : 12'd13;
    wire [11:0] header_at = type_end + 12'd1;
    reg behind_type;
    reg is_station, is_data, is_round;
    // Octets behind the EtherType, from 0; it stays at its end.
    reg [11:0] place;
    reg header_wrong;
    reg [15:0] coming_length;
    reg [23:0] collected;
    reg hidden_bank;
    // The complete bank of each message.
    reg [255:0] banks;
    reg [255:0] fresh_bits;

    wire coming_bank;
    nc_select coming_select (
        .clk(clk), .bits(banks), .number(coming), .chosen(coming_bank)
    );

    wire in_payload = octet_valid && (is_data || is_round) && behind_type;
    // Words that are still to come; the place of the next one.
    reg fits;
    reg [8:0] to_come;
    reg comes_more;
    reg [ADDRESS-1:0] store_address;
    wire stores = in_payload && is_data && place[1:0] == 2'd3 && fits && comes_more;
    assign trace_stored = stores;
    assign trace_stored_last = stores && to_come == 9'd1;

    always @(posedge clk) begin
        if (sof) behind_type <= 1'b0;
        else if (octet_valid && index == type_end) behind_type <= 1'b1;
        if (rst || sof) begin
            is_data <= 1'b0;
            is_round <= 1'b0;
            header_wrong <= 1'b0;
            coming_length <= 16'd0;
            place <= 12'd0;
        end else if (type_strobe && begun) begin
            is_data <= is_group && data_type;
            is_round <= is_group && round_type;
        end
        if (sof) is_station <= 1'b0;
        else if (type_strobe) is_station <= is_group && (data_type || round_type);
        fits <= coming_known && coming_length == {7'd0, coming_words};
        if (in_payload && place == 12'd5) begin
            to_come <= coming_words;
            comes_more <= coming_words != 9'd0;
            store_address <= coming_row[ADDRESS-1:0] ^ (hidden_bank ? HALF : {ADDRESS{1'b0}});
        end else if (stores) begin
            to_come <= to_come - 9'd1;
            comes_more <= to_come != 9'd1;
            store_address <= store_address + ONE;
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
                    hidden_bank <= BANKS == 2 && !coming_bank;
                end
                default: ;
            endcase
        end
    end

    // The verdict when the frame is over. The words have to be there before the check sequence.
    wire [13:0] payload_end = {2'd0, header_at} + 14'd8 + {3'd0, coming_length[8:0], 2'b00};
    wire length_wrong = is_round ? coming_length != 16'd1
        : coming_length == 16'd0 || coming_length > {7'd0, `NC_FRAME_WORDS};
    // A frame that is no runt ends long behind its length.
    reg [13:0] known_end;
    reg length_is_wrong;
    always @(posedge clk) begin
        known_end <= payload_end;
        length_is_wrong <= length_wrong;
    end
    wire is_malformed = header_wrong || length_is_wrong || known_end > {2'd0, length};
    reg [3:0] verdict;
    always @* begin
        if (!eof || !begun) verdict = VERDICT_NONE;
        else if (er_seen || !fcs_ok) verdict = DAMAGED;
        else if (length < SHORTEST) verdict = RUNT;
        else if (length > LONGEST) verdict = LONG;
        else if (!is_data && !is_round) verdict = OTHER;
        else if (is_malformed) verdict = MALFORMED;
        else if (is_round) verdict = OTHER;
        else if (!coming_known) verdict = UNKNOWN;
        else verdict = fits ? STORED : WRONG_LENGTH;
    end

    assign is_other = eof && fcs_ok && !er_seen && length >= SHORTEST && length <= LONGEST
        && !is_station;

    // Several short bursts may be on their way to their instant, but one frame of data only.
    reg [3:0] reached;
    reg [4*DELAY-1:0] delayed;
    reg [7:0] completed;
    wire [3:0] due = delayed[4*DELAY-1 -: 4];
    reg commits;
    always @(posedge clk) begin
        commits <= !rst && delayed[4*DELAY-5 -: 4] == STORED;
        reached <= rst ? VERDICT_NONE : verdict;
        delayed <= rst ? {(4 * DELAY){1'b0}} : {delayed[4*DELAY-5:0], reached};
        if (reached == STORED) completed <= coming;
    end

    // `receive` takes what has come by its issue, which is known one cycle later. A frame that is
    // complete in the cycle behind the issue is another one.
    wire [7:0] id = current[`NC_ROW_ID];
    wire [8:0] words = current[`NC_ROW_WORDS];
    reg received, received_before, completes_same;
    reg [7:0] received_id, received_id_before;
    wire bank, completed_is_fresh;
    wire takes = received && fresh;
    nc_select fresh_select (.clk(clk), .bits(fresh_bits), .number(id), .chosen(fresh));
    nc_select bank_select (.clk(clk), .bits(banks), .number(id), .chosen(bank));
    nc_select completed_select (
        .clk(clk), .bits(fresh_bits), .number(completed), .chosen(completed_is_fresh)
    );
    // What was issued up to two cycles ago is not seen in the bits yet.
    wire is_taken = (does_receive && id == completed)
        || (received && received_id == completed)
        || (received_before && received_id_before == completed);
    always @(posedge clk) begin
        received <= !rst && does_receive;
        received_before <= !rst && received;
        received_id <= id;
        received_id_before <= received_id;
        completes_same <= commits && completed == id;
        if (rst) begin
            banks <= 256'd0;
            fresh_bits <= 256'd0;
        end else begin
            if (takes && !completes_same) fresh_bits[received_id] <= 1'b0;
            if (commits) begin
                fresh_bits[completed] <= 1'b1;
                if (BANKS == 2) banks[completed] <= !banks[completed];
            end
        end
        counts_received <= !rst && commits;
        counts_overwritten <=
            !rst && commits && completed_is_fresh && !is_taken;
        counts_unknown <= !rst && due == UNKNOWN;
        counts_wrong_length <= !rst && due == WRONG_LENGTH;
        counts_damaged <= !rst && due == DAMAGED;
        counts_malformed <= !rst && due == MALFORMED;
        counts_runt <= !rst && due == RUNT;
        counts_long <= !rst && due == LONG;
    end

    // The copy: addresses from the issue on, words two cycles later.
    wire [ADDRESS-1:0] first = current[ADDRESS-1:0];
    reg presents, presented, last_presented, copy_last;
    reg [ADDRESS-1:0] copy_address;
    reg [8:0] copy_left;
    reg taken, taken_bank, address_top;
    wire copied_bank = BANKS == 2 && (received ? bank : taken_bank);
    wire [31:0] read_word;
    assign copy_ends = copies && copy_last;
    always @(posedge clk) begin
        if (received) begin
            taken <= fresh;
            taken_bank <= bank;
        end
        presents <= !rst && (does_receive ? words != 9'd1 : presents && copy_left != 9'd1);
        presented <= !rst && (does_receive || presents);
        copies <= !rst && presented && (received ? fresh : taken);
        last_presented <= does_receive ? words == 9'd1 : copy_left == 9'd1;
        copy_last <= last_presented;
        copied_word <= read_word;
        address_top <= may_issue ? first[ADDRESS-1] : copy_address[ADDRESS-1];
        if (does_receive) begin
            copy_address <= first + ONE;
            copy_left <= words - 9'd1;
        end else begin
            copy_address <= copy_address + ONE;
            copy_left <= copy_left - 9'd1;
        end
    end
    nc_halves #(.ADDRESS(ADDRESS)) memory (
        .clk(clk), .write(stores), .write_address(store_address),
        .write_data({collected, octet}),
        .read_address(may_issue ? first[ADDRESS-2:0] : copy_address[ADDRESS-2:0]),
        .high(address_top ^ copied_bank), .read_data(read_word)
    );
endmodule

`default_nettype wire
