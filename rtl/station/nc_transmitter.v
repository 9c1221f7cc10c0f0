// The transmitter: preamble, header, words, padding, check sequence, gap; and best effort where the
// program leaves room for it.
//
// `starts_data` or `starts_sync` is in the cycle behind the issue c of the instruction. The first
// octet of the preamble is on the pins in cycle c + NC_SEND_START, and each further octet in the
// next cycle.
`default_nettype none
`include "nc_table.vh"

module nc_transmitter (
    input  wire        clk,
    input  wire        rst,

    input  wire [47:0] source,
    input  wire        has_tag,

    input  wire        starts_data,
    input  wire        starts_sync,
    input  wire [7:0]  message,
    input  wire [8:0]  words,
    input  wire [31:0] round,

    // The send buffer: the word of an index is there two cycles later.
    output wire [8:0]  word_index,
    input  wire [31:0] word,

    // Best effort: the octet of an index is there two cycles later. While the program halts no
    // instruction is issued for `halted_cycles` from now on, and none while it is stopped.
    input  wire        best_there,
    input  wire [10:0] best_length,
    input  wire [7:0]  best_octet,
    input  wire        halting,
    input  wire [31:0] halted_cycles,
    input  wire        stopped,
    output wire [10:0] best_index,
    output wire        best_sent,

    // Whether words of the send buffer are still to leave, a preamble may begin NC_SEND_START from
    // now, a frame is on the wire or about to be (or its gap), the EtherType has left.
    output reg         has_data,
    output reg         may_send,
    output wire        busy,
    output wire        ethertype_sent,

    output reg  [7:0]  txd,
    output reg         tx_en
);
    localparam [2:0] PREAMBLE = 3'd0, HEADER = 3'd1, WORDS = 3'd2, PADDING = 3'd3, CHECK = 3'd4,
        BEST = 3'd5;
    localparam [4:0] PREAMBLE_OCTETS = 5'd8, GAP = 5'd12;
    // Octets of a frame before its words, without its tag; words of the shortest payload, which
    // are 11 with 2 octets less, or more: 46 octets with the header's 4.
    localparam [4:0] HEADER_OCTETS = 5'd18, TAG = 5'd4;
    localparam [5:0] PAYLOAD_WORDS_OCTETS = 6'd42;

    // Cycles to the first octet, this one not counted.
    reg [4:0] ahead;
    reg on_wire;
    reg [4:0] gap;
    reg is_data, is_best;
    reg [7:0] frame_message;
    reg [8:0] frame_words;
    reg [31:0] frame_round;

    // Of the octet that is on the pins in the next cycle: its part of the frame, and its place in
    // that. And the part of the one that is there.
    reg [2:0] next_part;
    reg [10:0] next_place;
    reg [2:0] part;
    reg frame_ends, type_is_out;
    reg [31:0] crc;
    reg [31:0] shifted;

    initial begin
        on_wire = 1'b0;
        gap = 5'd0;
    end

    wire starts = starts_data || starts_sync;
    // With its preamble, check sequence and gap it is over before the next instruction.
    reg [31:0] best_cycles;
    reg best_known, best_fits;
    wire starts_best = best_there && best_fits && !starts && !busy;
    assign best_sent = frame_ends && on_wire && is_best;
    wire [10:0] words_octets = {frame_words, 2'b00};
    // The last place of each part, and the first one behind the EtherType. They do not change while
    // a frame leaves: so they may be late.
    reg [10:0] header_last, words_last, padding_last, best_last, type_end;
    // Padding follows words of fewer octets than that.
    reg needs_padding;
    always @(posedge clk) begin
        header_last <= {6'd0, HEADER_OCTETS} + (has_tag ? {6'd0, TAG} : 11'd0) - 11'd1;
        words_last <= words_octets - 11'd1;
        padding_last <= {5'd0, PAYLOAD_WORDS_OCTETS} - words_octets - 11'd1;
        best_last <= best_length - 11'd1;
        needs_padding <= words_octets < {5'd0, PAYLOAD_WORDS_OCTETS};
        type_end <= header_last - 11'd3;
    end

    // Of the octet behind the next one.
    reg part_ends;
    reg [2:0] following_part;
    always @* begin
        part_ends = 1'b0;
        following_part = CHECK;
        case (next_part)
            PREAMBLE: begin
                part_ends = next_place == {6'd0, PREAMBLE_OCTETS} - 11'd1;
                following_part = is_best ? BEST : HEADER;
            end
            HEADER: begin
                part_ends = next_place == header_last;
                following_part = WORDS;
            end
            WORDS: begin
                part_ends = next_place == words_last;
                if (needs_padding) following_part = PADDING;
            end
            PADDING: part_ends = next_place == padding_last;
            BEST: part_ends = next_place == best_last;
            default: ;
        endcase
    end

    assign ethertype_sent = on_wire && !is_best && type_is_out;
    assign busy = ahead != 5'd0 || on_wire || gap != 5'd0;

    wire [15:0] ethertype = is_data ? `NC_ETHERTYPE_DATA : `NC_ETHERTYPE_ROUND;
    wire [7:0] shown_message = is_data ? frame_message : 8'd0;
    wire [31:0] payload_header = {8'd0, shown_message, 7'd0, frame_words};
    wire [143:0] untagged_header = {`NC_GROUP, source, ethertype, payload_header};
    wire [175:0] header = has_tag
        ? {`NC_GROUP, source, `NC_TAG, ethertype, payload_header}
        : {untagged_header, 32'd0};
    wire [7:0] header_octet = header[8 * (21 - next_place[4:0]) +: 8];

    // A word's first octet comes from the memory, the others from what is left of it.
    wire [10:0] place_ahead = next_place + 11'd2;
    assign word_index = next_part == WORDS ? place_ahead[10:2] : 9'd0;
    wire [31:0] current = is_data ? word : frame_round;
    wire [7:0] word_octet = next_place[1:0] == 2'd0 ? current[31:24] : shifted[31:24];

    assign best_index = next_part == BEST ? place_ahead
        : {10'd0, next_part == PREAMBLE && next_place[2:0] == 3'd7};

    wire [31:0] crc_next;
    crc32 crc_step (.crc(crc), .octet(txd), .next(crc_next));
    wire [31:0] check = ~crc_next;

    reg [7:0] next_octet;
    always @* begin
        case (next_part)
            PREAMBLE: next_octet = next_place[2:0] == 3'd7 ? 8'hd5 : 8'h55;
            HEADER: next_octet = header_octet;
            WORDS: next_octet = word_octet;
            PADDING: next_octet = 8'd0;
            BEST: next_octet = best_octet;
            default: next_octet = part == CHECK ? crc[7:0] : check[7:0];
        endcase
    end

    always @(posedge clk) begin
        if (rst) begin
            ahead <= 5'd0;
            on_wire <= 1'b0;
            // A frame that is cut has a gap behind it, too.
            gap <= on_wire ? GAP : gap != 5'd0 ? gap - 5'd1 : 5'd0;
            tx_en <= 1'b0;
            txd <= 8'd0;
        end else begin
            if (starts) ahead <= `NC_SEND_START - 5'd2;
            else if (ahead != 5'd0) ahead <= ahead - 5'd1;
            if (gap != 5'd0) gap <= gap - 5'd1;
            if (ahead == 5'd1 || starts_best) begin
                on_wire <= 1'b1;
                tx_en <= 1'b1;
                txd <= 8'h55;
            end else if (on_wire) begin
                txd <= next_octet;
                if (frame_ends) begin
                    on_wire <= 1'b0;
                    tx_en <= 1'b0;
                    txd <= 8'd0;
                    gap <= GAP;
                end
            end
        end
        // What is said of the next cycle: of what is on the wire or ahead then, and of the gap.
        may_send <= !on_wire && gap <= `NC_SEND_START + 5'd1
            && (rst || (ahead == 5'd0 && !starts && !starts_best));
        has_data <= !rst && (starts ? starts_data
            : (ahead != 5'd0 || (on_wire && !frame_ends)) && is_data && !is_best);
        // Late by some cycles, which are counted, too. At first the length is still another's.
        best_cycles <= {21'd0, best_length} + 32'd32;
        best_known <= best_there;
        best_fits <= !rst && best_there && best_known
            && (stopped || (halting && halted_cycles > best_cycles));
        if (starts || starts_best) is_best <= starts_best;
        if (starts) begin
            is_data <= starts_data;
            frame_message <= message;
            frame_words <= starts_data ? words : 9'd1;
            frame_round <= round;
        end
        if (ahead == 5'd1 || starts_best) begin
            // The preamble's first octet is put on the pins at the same time.
            part <= PREAMBLE;
            next_part <= PREAMBLE;
            next_place <= 11'd1;
            frame_ends <= 1'b0;
            type_is_out <= 1'b0;
        end else begin
            part <= next_part;
            if (part_ends) next_part <= following_part;
            next_place <= part_ends ? 11'd0 : next_place + 11'd1;
            frame_ends <= next_part == CHECK && next_place == 11'd3;
            // Its last octet has been on the pins: the header's four octets behind it are next.
            type_is_out <= next_part == HEADER ? next_place >= type_end : next_part != PREAMBLE;
        end
        // While the check sequence leaves, its rest waits here.
        if (part == PREAMBLE) crc <= 32'hffffffff;
        else if (part == CHECK) crc <= {8'd0, crc[31:8]};
        else if (next_part == CHECK) crc <= {8'd0, check[31:8]};
        else crc <= crc_next;
        shifted <= next_place[1:0] == 2'd0 ? {current[23:0], 8'd0} : {shifted[23:0], 8'd0};
    end
endmodule

`default_nettype wire
