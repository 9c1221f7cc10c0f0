// The bus between the dedicated paths: one real-time frame of one input at a time, for all outputs.
//
// Timing: `announce` of an input in cycle q + 20 begins its frame at once if the bus is free: the
// preamble is on the bus from q + 21 on and the SFD in q + 28. `line` is each input's stream, 27
// cycles old, so that octets follow without a hole. `grant` is combinational and warns the outputs.
//
// The bus is free if nothing is on it now, so that at least one cycle is between frames. Of frames
// that are announced in the same cycle the lowest port's passes; each one that finds the bus
// occupied is dropped whole. `limits` says with `announce` how many octets behind its SFD a
// frame may have. A longer one is cut: the octet behind them leaves as an error, and the bus is
// free then, even if the frame never ends.
`default_nettype none

module rt_bus (
    input  wire        clk,
    input  wire        rst,
    input  wire [3:0]  announce,
    input  wire [47:0] limits,
    input  wire [3:0]  line_dv,
    input  wire [3:0]  line_er,
    input  wire [31:0] line_data,
    output wire [3:0]  grant,
    output reg  [3:0]  collision,  // pulses
    output reg         valid,
    output reg         er,
    output reg  [7:0]  data,
    output reg  [1:0]  owner
);
    localparam [1:0] FREE = 2'd0;
    localparam [1:0] PREAMBLE = 2'd1;
    localparam [1:0] OCTETS = 2'd2;

    reg [1:0]  state;
    reg [2:0]  sent;
    reg [11:0] count;
    reg [11:0] limit;

    wire [3:0] first = announce & (~announce + 4'd1);
    wire open = state == FREE && !valid;
    wire dv_here = line_dv[owner];
    wire er_here = line_er[owner];
    wire [7:0] data_here = line_data[{owner, 3'd0} +: 8];

    wire [1:0] next = {grant[3] || grant[2], grant[3] || grant[1]};

    assign grant = open ? first : 4'd0;

    always @(posedge clk) begin
        collision <= announce & ~grant;
        valid <= 1'b0;
        er <= 1'b0;
        case (state)
            FREE: if (grant != 4'd0) begin
                state <= PREAMBLE;
                owner <= next;
                limit <= limits[12 * next +: 12];
                sent <= 3'd1;
                valid <= 1'b1;
                data <= 8'h55;
            end
            PREAMBLE: begin
                sent <= sent + 3'd1;
                valid <= 1'b1;
                data <= sent == 3'd7 ? 8'hd5 : 8'h55;
                count <= 12'd0;
                if (sent == 3'd7)
                    state <= OCTETS;
            end
            default: begin
                count <= count + 12'd1;
                valid <= dv_here;
                data <= data_here;
                er <= dv_here && (er_here || count == limit);
                if (!dv_here || count == limit)
                    state <= FREE;
            end
        endcase
        if (rst) begin
            state <= FREE;
            valid <= 1'b0;
            er <= 1'b0;
            collision <= 4'd0;
        end
    end
endmodule

`default_nettype wire
