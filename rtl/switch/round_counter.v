// Counts the cycles of a round, which begins with an NC-SYNC that the bus lets pass.
//
// A place in a round is that of the first octet of a frame's preamble, as it leaves: 7 octets
// before the SFD. Place 0 is the cycle in which the SFD of the NC-SYNC was on its port's stream.
// From place `limit` on the switch is not synchronised, until the next NC-SYNC; with a limit of 0
// it never is. An NC-SYNC is in time if the switch is not synchronised, or from place `least` on.
//
// Timing: `begins` is high in cycle q + 20, if q is place 0. `place` in cycle t is that of frames
// on which the classifier decides in t + 2, and `current` says that it is one. `sync_in_time` in
// t + 2 is for these frames, too. A frame on which it decides in q + 22 or before is judged by the
// round before. It finds the bus occupied in any case.
`default_nettype none

module round_counter (
    input  wire        clk,
    input  wire        rst,
    input  wire        begins,
    input  wire [27:0] least,
    input  wire [27:0] limit,
    output reg  [27:0] place,
    output wire        current,
    output reg         synchronised,
    output reg         sync_in_time
);
    localparam [1:0] EARLY = 2'd3;  // place 0 is there in q + 24

    reg [1:0] early;
    reg free;

    assign current = synchronised && early == 2'd0 && place < limit;

    always @(posedge clk) begin
        early <= begins ? EARLY : early - {1'b0, early != 2'd0};
        place <= begins ? 28'd0 : place + {27'd0, early == 2'd0};
        synchronised <= limit != 28'd0 && (begins || current || (synchronised && early != 2'd0));
        free <= !synchronised || (early == 2'd0 && (place >= least || place >= limit));
        sync_in_time <= free;
        if (rst) begin
            early <= 2'd0;
            place <= 28'd0;
            synchronised <= 1'b0;
            free <= 1'b1;
            sync_in_time <= 1'b1;
        end
    end
endmodule

`default_nettype wire
