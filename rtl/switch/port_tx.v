// What leaves a port: arbitrates between the dedicated path and best effort.
//
// Timing: `warn` in cycle w says that the preamble of a real-time frame is on rt_* in cycle
// w + 13 + WAIT, and so on the pins in w + 14 + WAIT. That is what it takes to abort: the octet
// with TX_ER is on the pins in w + 1, and 12 octets of gap follow. All pins are registers.
//
// A best-effort frame begins only if it will be over, with the gap, before an announced real-time
// frame. One that is on its way goes on if it will be over in time anyway. Otherwise it is aborted
// under the policies ABORT_RETRY and ABORT_DROP. Under FINISH it ends first, and the real-time
// frame waits in a queue of its own. That queue is also where a real-time frame goes that finds the
// port occupied for any other reason, such as a policy that has just changed.
//
// Under QBU best-effort frames leave as IEEE 802.3br clause 99 says. One that is in the way is cut
// where both parts have 64 octets: what has left ends with an mCRC, the rest follows later. A cut
// is between words. The longest frame that cannot be cut has 123 octets, so that real-time frames
// never wait if WAIT is 129 or more, and at most 129 - WAIT cycles if it is less.
//
// Real-time frames that pass without waiting keep the gap that their sender kept. All other frames
// have a gap of 12 octets before them.
`default_nettype none

module port_tx #(
    parameter WAIT = 0
) (
    input  wire        clk,
    input  wire        rst,
    input  wire [1:0]  policy,
    // dedicated path
    input  wire        warn,
    input  wire        rt_valid,
    input  wire        rt_er,
    input  wire [7:0]  rt_data,
    // best effort: the oldest frame, its present word, and what becomes of it
    input  wire        be_ready,
    input  wire [10:0] be_length,
    input  wire [31:0] be_word,
    output wire        be_advance,
    output wire        be_rewind,
    output wire        be_pop,
    // GMII
    output reg         tx_en,
    output reg         tx_er,
    output reg  [7:0]  txd,
    // pulses for the counters
    output reg         rt_out,
    output reg         rt_lost,
    output reg         be_out,
    output reg         aborted,
    output reg         retried,
    output reg         lost_to_abort,
    output reg         preempted
);
    localparam [1:0] ABORT_RETRY = 2'd0;
    localparam [1:0] ABORT_DROP = 2'd1;
    localparam [1:0] QBU = 2'd3;
    localparam [3:0] GAP = 4'd12;
    // A frame's octets on the pins before those of its header: preamble and SFD.
    localparam [11:0] PREAMBLE = 12'd8;
    localparam [11:0] WARNING = 14 + WAIT;
    // The last octet that leaves the gap before a real-time frame.
    localparam [11:0] IN_TIME = 1 + WAIT;

    localparam [2:0] IDLE = 3'd0;
    localparam [2:0] DIRECT = 3'd1;  // real-time octets as they come
    localparam [2:0] QUEUED = 3'd2;  // real-time octets out of the queue
    localparam [2:0] BEST = 3'd3;    // a best-effort frame, or a fragment of it
    localparam [2:0] MCRC = 3'd4;    // the check sequence of a fragment that is not the last one

    // Octets of a frame in a fragment that is cut, and in the rest with its FCS, at least.
    localparam [5:0] CUT_FROM = 6'd60;
    localparam [11:0] REST_FROM = 12'd64;

    reg [2:0]  state;
    reg [3:0]  gap;           // cycles without an octet on the pins, with this one; at most 12
    reg        after_direct;  // the last frame on the pins was one
    reg [11:0] left;          // octets of the best-effort frame with this one
    reg [3:0]  preamble;      // of them that were sent, at most 8
    reg [1:0]  lane;
    reg        again;         // the oldest frame was aborted before
    reg [5:0]  pending;       // announced real-time frames that are not here
    reg        fragments;     // the best-effort frame leaves in such
    reg        cut_before;    // at least one of them has left
    reg        hold;          // a real-time frame waits for a cut, if there can still be one
    reg [5:0]  part;          // octets of the frame in this fragment, at most 60
    reg [11:0] until_rt;      // cycles to the first of them on the pins,
    reg        until_known;   // unless it was announced behind another one

    // ---- real-time frames that wait ----
    reg        rt_before;
    reg        storing;
    reg        held;
    reg [8:0]  held_octet;
    wire [11:0] room;
    wire       queue_empty;
    wire       queue_valid;
    wire [9:0] queue_out;
    wire       queue_busy = held || !queue_empty;
    wire       idle = state == IDLE;
    wire       rt_first = rt_valid && !rt_before;
    wire       ready = idle && !queue_busy && (gap == GAP || (after_direct && gap != 4'd0));
    wire       direct_begins = rt_first && ready;
    wire       store = rt_valid && (rt_first ? !direct_begins : storing);
    // The entry before the last place ends a frame that has no place.
    wire       last_place = room <= 12'd2;
    wire       overflow = held && last_place && store;
    wire       queue_last = !store || last_place;
    wire       queue_pop = state == QUEUED || (idle && queue_valid && gap == GAP);

    queue #(.WIDTH(10), .ADDRESS_BITS(11)) waiting (
        .clk(clk), .rst(rst),
        .push(held), .in({queue_last, held_octet[8] || overflow, held_octet[7:0]}),
        .room(room), .empty(queue_empty),
        .pop(queue_pop), .valid(queue_valid), .out(queue_out)
    );

    always @(posedge clk) begin
        rt_before <= rt_valid;
        storing <= store && !overflow && !(rt_first && last_place);
        held <= store && !overflow && !(rt_first && last_place);
        held_octet <= {rt_er, rt_data};
        rt_lost <= overflow || (rt_first && store && last_place);
        if (rst) begin
            // A frame that is on its way now is no whole one.
            rt_before <= 1'b1;
            storing <= 1'b0;
            held <= 1'b0;
            rt_lost <= 1'b0;
        end
    end

    // ---- best effort ----
    wire [11:0] be_octets = (cut_before ? left : {1'b0, be_length}) + PREAMBLE;
    wire over_in_time = until_known && until_rt >= be_octets + {8'd0, GAP} + 12'd1;
    wire quiet = idle && !rt_valid && !queue_busy && gap == GAP;
    wire [5:0] pending_left = pending - {5'd0, rt_first && pending != 6'd0};
    wire begins = quiet && be_ready && !warn && (pending == 6'd0 || over_in_time);
    wire best = state == BEST;
    wire aborting = policy == ABORT_RETRY || policy == ABORT_DROP;
    wire in_the_way = best && warn && left > IN_TIME;
    wire abort = in_the_way && aborting;
    wire in_body = best && preamble == PREAMBLE[3:0];
    wire cut = hold && in_body && lane == 2'd0 && part == CUT_FROM && left >= REST_FROM;
    wire ends = best && !abort && !cut && left == 12'd1;
    wire in_octets = in_body && !cut;

    assign be_advance = in_octets && lane == 2'd2;
    assign be_rewind = abort;
    assign be_pop = ends || (abort && policy != ABORT_RETRY);

    // ---- fragments ----
    reg [1:0]  frame_number;
    reg [1:0]  fragment_number;
    reg [31:0] crc;
    reg [1:0]  mcrc_lane;
    wire [31:0] crc_next;
    wire [7:0] octet = be_word[{lane, 3'd0} +: 8];
    // The FCS of what has left of the frame, with its first two octets inverted (clause 99.3.6).
    wire [31:0] mcrc = ~crc ^ 32'h0000ffff;

    crc32 check (.crc(crc), .octet(octet), .next(crc_next));

    function [7:0] smd_start;  // also the codes of fragment counts
        input [1:0] number;
        case (number)
            2'd0: smd_start = 8'he6;
            2'd1: smd_start = 8'h4c;
            2'd2: smd_start = 8'h7f;
            default: smd_start = 8'hb3;
        endcase
    endfunction

    function [7:0] smd_continue;
        input [1:0] number;
        case (number)
            2'd0: smd_continue = 8'h61;
            2'd1: smd_continue = 8'h52;
            2'd2: smd_continue = 8'h9e;
            default: smd_continue = 8'h2a;
        endcase
    endfunction

    reg [7:0] delimiter;
    always @* begin
        delimiter = 8'h55;
        if (preamble == 4'd7 && !fragments)
            delimiter = 8'hd5;
        else if (preamble == 4'd7 && !cut_before)
            delimiter = smd_start(frame_number);
        else if (preamble == 4'd7)
            delimiter = smd_start(fragment_number);
        else if (preamble == 4'd6 && cut_before)
            delimiter = smd_continue(frame_number);
    end

    always @(posedge clk) begin
        if (begins && !cut_before) begin
            fragments <= policy == QBU;
            crc <= 32'hffffffff;
        end else if (in_octets) begin
            crc <= crc_next;
        end
        if (begins)
            part <= 6'd0;
        else if (in_octets && part != CUT_FROM)
            part <= part + 6'd1;
        hold <= best && fragments && !aborting && (hold || in_the_way);
        if (cut) begin
            cut_before <= 1'b1;
            if (cut_before)
                fragment_number <= fragment_number + 2'd1;
        end else if (abort || ends) begin
            cut_before <= 1'b0;
            fragment_number <= 2'd0;
            frame_number <= frame_number + {1'b0, fragments};
        end
        mcrc_lane <= cut ? 2'd1 : mcrc_lane + 2'd1;
        preempted <= cut;
        if (rst) begin
            fragments <= 1'b0;
            cut_before <= 1'b0;
            hold <= 1'b0;
            frame_number <= 2'd0;
            fragment_number <= 2'd0;
            preempted <= 1'b0;
        end
    end

    // ---- pins ----
    reg [9:0] pins;
    always @* begin
        pins = 10'd0;
        if (direct_begins || (state == DIRECT && rt_valid))
            pins = {1'b1, rt_er, rt_data};
        else if (state == QUEUED)
            pins = {1'b1, queue_out[8] || !queue_valid, queue_out[7:0]};
        else if (queue_pop)
            pins = {1'b1, queue_out[8:0]};
        else if (abort)
            pins = {2'b11, 8'h00};
        else if (in_octets)
            pins = {2'b10, octet};
        else if (cut)
            pins = {2'b10, mcrc[7:0]};
        else if (state == MCRC)
            pins = {2'b10, mcrc[{mcrc_lane, 3'd0} +: 8]};
        else if (best)
            pins = {2'b10, delimiter};
        else if (begins)
            pins = {2'b10, 8'h55};
    end

    always @(posedge clk) begin
        {tx_en, tx_er, txd} <= pins;
        gap <= pins[9] ? 4'd0 : gap + {3'd0, gap != GAP};
        if (rst) begin
            tx_en <= 1'b0;
            tx_er <= 1'b0;
            gap <= 4'd0;
        end
    end

    always @(posedge clk) begin
        case (state)
            IDLE: begin
                if (direct_begins)
                    state <= DIRECT;
                else if (queue_pop && !queue_out[9])
                    state <= QUEUED;
                else if (begins)
                    state <= BEST;
            end
            DIRECT: if (!rt_valid) state <= IDLE;
            QUEUED: if (queue_out[9] || !queue_valid) state <= IDLE;
            MCRC: if (mcrc_lane == 2'd3) state <= IDLE;
            default: begin
                if (abort || ends)
                    state <= IDLE;
                else if (cut)
                    state <= MCRC;
            end
        endcase
        if (pins[9])
            after_direct <= direct_begins || state == DIRECT;
        if (begins)
            left <= be_octets - 12'd1;
        else if (best && !cut)
            left <= left - 12'd1;
        preamble <= begins ? 4'd1 : preamble + {3'd0, preamble != PREAMBLE[3:0]};
        if (begins)
            lane <= 2'd0;  // a cut is between words, too
        else if (in_octets)
            lane <= lane + 2'd1;
        if (abort || ends)
            again <= abort && policy == ABORT_RETRY;
        pending <= pending_left + {5'd0, warn};
        until_rt <= warn && pending_left == 6'd0 ? WARNING - 12'd1 : until_rt - 12'd1;
        until_known <= pending_left == 6'd0 ? warn : until_known && !rt_first;
        rt_out <= direct_begins || (idle && queue_pop);
        be_out <= ends;
        aborted <= abort;
        retried <= begins && again && !cut_before;
        lost_to_abort <= abort && policy != ABORT_RETRY;
        if (rst) begin
            state <= IDLE;
            after_direct <= 1'b0;
            again <= 1'b0;
            pending <= 6'd0;
            until_known <= 1'b0;
            rt_out <= 1'b0;
            be_out <= 1'b0;
            aborted <= 1'b0;
            retried <= 1'b0;
            lost_to_abort <= 1'b0;
        end
    end
endmodule

`default_nettype wire
