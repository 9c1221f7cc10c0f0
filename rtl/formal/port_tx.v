// Properties of port_tx, as the end of its module. What waits in its queue, what is announced and
// what comes is free: no order of events breaks these.
    reg       was_reset;
    reg       on_before;
    reg       aborted_before;
    reg       aborted_before_that;
    reg       direct;       // the frame that begins on the pins now passes without waiting
    reg       last_direct;  // so did the last one
    reg [3:0] idle_octets;  // on the pins before this cycle, at most 12
    initial was_reset = 1'b0;
    always @(posedge clk) begin
        was_reset <= rst;
        on_before <= tx_en;
        aborted_before <= abort && !rst;
        aborted_before_that <= aborted_before && !rst;
        direct <= direct_begins;
        if (tx_en && !on_before) last_direct <= direct;
        idle_octets <= tx_en ? 4'd0 : idle_octets + {3'd0, idle_octets != 4'd12};
        // What was on the pins is no matter after a reset that lasts as long as a gap.
        if (rst) begin
            on_before <= 1'b0;
            direct <= 1'b0;
            last_direct <= 1'b0;
        end
    end

    reg  [3:0] reset_cycles;
    reg        started;
    initial reset_cycles = 4'd0;
    initial started = 1'b0;
    always @(posedge clk) begin
        if (rst) reset_cycles <= reset_cycles + {3'd0, reset_cycles != 4'd15};
        started <= started || (rst && reset_cycles == 4'd15);
    end
    // Reset is long, then over.
    always @* assume (rst == !started);

    always @* if (started) begin
        // A gap before each frame, but for real time that keeps its sender's.
        if (tx_en && !on_before) assert (idle_octets == 4'd12 || (direct && last_direct));
        // Even those are apart.
        if (direct) assert (tx_en && !on_before);
        // What is aborted ends with an octet that says so, and nothing follows it.
        if (aborted_before) assert (tx_en && tx_er);
        if (aborted_before_that) assert (!tx_en);
    end
