// Says which real-time frames a port may bring: those that are in one of its windows of the round.
//
// Windows are [open, close) in places of round_counter, in ascending order, and do not overlap. A
// frame passes if its preamble begins in a window, and a shortest frame would end there: so from
// `open` to 72 octets before `close`. Octets from `close` on are for the bus to cut: `limit` is how
// many octets behind the SFD it may let pass. While the switch is not synchronised no window is
// open. With a `number` of 0 the port has no windows, and all of its frames pass but NC-SYNC.
//
// An NC-SYNC passes if the port may bring it and it is in time, whatever the windows. With windows
// it is cut behind SYNC_LONGEST octets: the first window opens behind those.
//
// Timing: `place` in cycle t is for `pass` and `limit` in t + 2, combinational in `sync`. Where
// windows are shorter than 72, which lets nothing pass, the ones behind may be late by 4 cycles
// each. Settings are for a port whose number is 0; what is changed otherwise counts sometime.
`default_nettype none

module guardian #(
    parameter INDEX_BITS = 5  // 2**INDEX_BITS windows
) (
    input  wire                  clk,
    input  wire                  rst,
    // settings
    input  wire [INDEX_BITS:0]   number,
    input  wire                  may_sync,
    input  wire [11:0]           max_length,
    input  wire                  write_open,
    input  wire                  write_close,
    input  wire [INDEX_BITS-1:0] write_index,
    input  wire [27:0]           write_value,
    // round_counter
    input  wire                  begins,
    input  wire                  current,
    input  wire [27:0]           place,
    input  wire                  sync_in_time,
    // classifier
    input  wire                  sync,
    output wire                  pass,
    output wire [11:0]           limit
);
    localparam [11:0] PREAMBLE = 12'd8;
    localparam [11:0] SHORTEST = 12'd72;      // with its preamble
    localparam [11:0] SYNC_LONGEST = 12'd68;  // with a tag

    reg [27:0] opens [0:(1 << INDEX_BITS)-1];
    reg [27:0] closes [0:(1 << INDEX_BITS)-1];
    reg [27:0] open;
    reg [27:0] close;
    reg [INDEX_BITS:0] at;
    reg loaded;  // `open` and `close` are those of window `at`

    // How far the window's end is from a place, and whether both are there.
    reg here;
    reg opened;
    reg [28:0] left;
    reg off;
    reg in_window;
    reg [11:0] room;
    reg [11:0] sync_room;

    wire fits = !left[28] && left[27:0] >= {16'd0, SHORTEST};
    wire over = here && !fits;
    wire wide = left[27:0] > {16'd0, max_length + PREAMBLE};

    assign pass = sync ? may_sync && sync_in_time : off || in_window;
    assign limit = off ? max_length : sync ? sync_room : room;

    always @(posedge clk) begin
        if (write_open)
            opens[write_index] <= write_value;
        if (write_close)
            closes[write_index] <= write_value;
        open <= opens[at[INDEX_BITS-1:0]];
        close <= closes[at[INDEX_BITS-1:0]];
    end

    always @(posedge clk) begin
        at <= begins ? {INDEX_BITS+1{1'b0}} : at + {{INDEX_BITS{1'b0}}, over};
        loaded <= !begins && !over;
        here <= loaded && current && at < number && !over && !begins;
        opened <= place >= open;
        left <= {1'b0, close} - {1'b0, place};
        off <= number == {INDEX_BITS+1{1'b0}};
        in_window <= here && opened && fits;
        room <= wide ? max_length : left[11:0] - PREAMBLE;
        sync_room <= max_length < SYNC_LONGEST ? max_length : SYNC_LONGEST;
        if (rst) begin
            at <= {INDEX_BITS+1{1'b0}};
            loaded <= 1'b0;
            here <= 1'b0;
            off <= 1'b1;
            in_window <= 1'b0;
        end
    end
endmodule

`default_nettype wire
