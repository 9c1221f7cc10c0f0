// Best effort of a station's host: one frame, whole before it is sent.
//
// The host gives its octets from the destination on, without padding and check sequence, 60 to
// 1,518 of them; others are dropped. The transmitter sends the frame while the program halts for
// longer than that takes, and the gap behind it. So it delays no frame of the program and need not
// be cut here. A program that never halts so long leaves nothing to best effort.
`default_nettype none

module nc_best_effort (
    input  wire        clk,
    input  wire        rst,

    // From the host: an octet in each cycle in which both are high.
    input  wire        valid,
    output wire        ready,
    input  wire [7:0]  octet,
    input  wire        last,

    // To the transmitter: a frame of `length` octets is there until it is `sent`. The octet of an
    // index is there two cycles later.
    output reg         there,
    output reg  [10:0] length,
    input  wire        sent,
    input  wire [10:0] index,
    output reg  [7:0]  read_octet
);
    localparam [10:0] SHORTEST = 11'd60, LONGEST = 11'd1518;

    reg [10:0] filled;
    wire takes = valid && ready;
    wire fits = filled < LONGEST;
    assign ready = !there;

    always @(posedge clk) begin
        if (rst) begin
            there <= 1'b0;
            filled <= 11'd0;
        end else if (there) begin
            if (sent) there <= 1'b0;
        end else if (takes) begin
            // One octet more than may be says that there were too many.
            if (filled <= LONGEST) filled <= filled + 11'd1;
            if (last) begin
                there <= filled + 11'd1 >= SHORTEST && fits;
                filled <= 11'd0;
            end
        end
        if (takes && last) length <= filled + 11'd1;
    end

    wire [7:0] stored_octet;
    always @(posedge clk) read_octet <= stored_octet;
    nc_memory #(.WIDTH(8), .ADDRESS(11)) memory (
        .clk(clk), .write(takes && fits), .write_address(filled), .write_data(octet),
        .read_address(index), .read_data(stored_octet)
    );
endmodule

`default_nettype wire
