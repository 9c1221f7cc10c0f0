// What leaves a port: arbitrates between the dedicated path and best effort.
//
// Timing: `warn` in cycle w says that the preamble of a real-time frame is on rt_* in cycle
// w + 13 + WAIT, and so on the pins in w + 14 + WAIT. That is what it takes to abort: the octet
// with TX_ER is on the pins in w + 1, and 12 octets of gap follow. All pins are registers.
//
// A best-effort frame begins only if it will be over, with the gap, before an announced real-time
// frame. One that is on its way goes on if it will be over in time anyway. Otherwise it is aborted
// under the policies ABORT_RETRY and ABORT_DROP; under FINISH it ends first, and the real-time
// frame waits in a queue of its own. That queue is also where a real-time frame goes that finds the
// port occupied for any other reason, such as a policy that has just changed.
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
    output reg         lost_to_abort
);
    localparam [1:0] ABORT_RETRY = 2'd0;
    localparam [1:0] FINISH = 2'd2;
    localparam [3:0] GAP = 4'd12;
    // A frame's octets on the pins before those of its header: preamble and SFD.
    localparam [11:0] PREAMBLE = 12'd8;
    localparam [11:0] WARNING = 14 + WAIT;
    // The last octet that leaves the gap before a real-time frame.
    localparam [11:0] IN_TIME = 1 + WAIT;

    localparam [1:0] IDLE = 2'd0;
    localparam [1:0] DIRECT = 2'd1;  // real-time octets as they come
    localparam [1:0] QUEUED = 2'd2;  // real-time octets out of the queue
    localparam [1:0] BEST = 2'd3;    // a best-effort frame

    reg [1:0]  state;
    reg [3:0]  gap;           // cycles without an octet on the pins, with this one; at most 12
    reg        after_direct;  // the last frame on the pins was one
    reg [11:0] left;          // octets of the best-effort frame with this one
    reg [3:0]  preamble;      // of them that were sent, at most 8
    reg [1:0]  lane;
    reg        again;         // the oldest frame was aborted before
    reg [5:0]  pending;       // announced real-time frames that are not here
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
    wire [11:0] be_octets = {1'b0, be_length} + PREAMBLE;
    wire over_in_time = until_known && until_rt >= be_octets + {8'd0, GAP} + 12'd1;
    wire quiet = idle && !rt_valid && !queue_busy && gap == GAP;
    wire [5:0] pending_left = pending - {5'd0, rt_first && pending != 6'd0};
    wire begins = quiet && be_ready && !warn && (pending == 6'd0 || over_in_time);
    wire best = state == BEST;
    wire abort = best && warn && policy != FINISH && left > IN_TIME;
    wire ends = best && !abort && left == 12'd1;
    wire in_octets = best && preamble == PREAMBLE[3:0];

    assign be_advance = in_octets && lane == 2'd2;
    assign be_rewind = abort;
    assign be_pop = ends || (abort && policy != ABORT_RETRY);

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
            pins = {2'b10, be_word[{lane, 3'd0} +: 8]};
        else if (best)
            pins = {2'b10, preamble == 4'd7 ? 8'hd5 : 8'h55};
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
            default: if (abort || ends) state <= IDLE;
        endcase
        if (pins[9])
            after_direct <= direct_begins || state == DIRECT;
        left <= begins ? be_octets - 12'd1 : left - 12'd1;
        preamble <= begins ? 4'd1 : preamble + {3'd0, preamble != PREAMBLE[3:0]};
        lane <= in_octets ? lane + 2'd1 : 2'd0;
        if (abort || ends)
            again <= abort && policy == ABORT_RETRY;
        pending <= pending_left + {5'd0, warn};
        until_rt <= warn && pending_left == 6'd0 ? WARNING - 12'd1 : until_rt - 12'd1;
        until_known <= pending_left == 6'd0 ? warn : until_known && !rt_first;
        rt_out <= direct_begins || (idle && queue_pop);
        be_out <= ends;
        aborted <= abort;
        retried <= begins && again;
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
