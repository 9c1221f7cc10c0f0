// Brings what a GMII receives from the clock of the link partner into the device's own clock.
//
// Timing: an octet that is on the pins in cycle r is on dv, er, data in cycle r + E. With equal
// clocks E = START + 3: one cycle to write, two to synchronise the pointer, START - 1 to wait, one
// for the output registers. With clocks apart, E is one of two neighbouring numbers of cycles.
//
// A burst of dv leaves without holes. START octets are waited for, so that a sender that is slower
// by 200 ppm does not empty the memory within a frame. A burst ends with a marker that is written
// in its first cycle without dv, so that bursts stay apart. What is left of a burst after a slip
// is discarded: octets leave only behind one that is marked as the first of its burst.
//
// The side of rx_clk has no reset, for that clock may be absent during it. The reader empties the
// memory while rst is high. The registers of that side begin with initial values.
`default_nettype none

module elastic_fifo #(
    parameter START = 2
) (
    input  wire       rx_clk,
    input  wire       rx_dv,
    input  wire       rx_er,
    input  wire [7:0] rxd,
    input  wire       clk,
    input  wire       rst,
    output reg        dv,
    output reg        er,
    output reg  [7:0] data,
    output reg        slip
);
    localparam [4:0] FILL = START;
    // A burst that ends, or whose clock stops, before START octets are in leaves after so long.
    localparam [3:0] PATIENCE = 4'd15;

    function [4:0] gray;
        input [4:0] binary;
        gray = binary ^ {1'b0, binary[4:1]};
    endfunction

    function [4:0] ungray;
        input [4:0] coded;
        begin
            ungray[4] = coded[4];
            ungray[3] = ungray[4] ^ coded[3];
            ungray[2] = ungray[3] ^ coded[2];
            ungray[1] = ungray[2] ^ coded[1];
            ungray[0] = ungray[1] ^ coded[0];
        end
    endfunction

    // An entry: first of its burst, dv (0 is the marker of an end), er, octet.
    reg [10:0] memory [0:15];

    // ---- rx_clk ----
    reg [4:0] write_pointer;
    reg [4:0] write_gray;
    reg [4:0] read_gray_1;
    reg [4:0] read_gray_2;
    reg [4:0] read_binary;  // late is safe: there is more room than it says
    reg       open;      // octets of a burst are in, its marker is not
    reg       lost;      // what comes has no place, until a marker is in
    reg       overflow;  // changes with each such loss

    reg [4:0] read_gray;
    wire [4:0] used = write_pointer - read_binary;
    wire full = used >= 5'd16;
    wire wanted = rx_dv ? !lost : open;
    wire write = wanted && !full;

    initial begin
        write_pointer = 5'd0;
        write_gray = 5'd0;
        read_gray_1 = 5'd0;
        read_gray_2 = 5'd0;
        read_binary = 5'd0;
        open = 1'b0;
        lost = 1'b0;
        overflow = 1'b0;
    end

    always @(posedge rx_clk) begin
        read_gray_1 <= read_gray;
        read_gray_2 <= read_gray_1;
        read_binary <= ungray(read_gray_2);
        if (write) begin
            memory[write_pointer[3:0]] <= {rx_dv && !open, rx_dv, rx_er, rxd};
            write_pointer <= write_pointer + 5'd1;
            write_gray <= gray(write_pointer + 5'd1);
            open <= rx_dv;
        end
        if (wanted && !write) begin
            lost <= 1'b1;
            overflow <= overflow ^ !lost;
        end else if (!rx_dv) begin
            lost <= 1'b0;
        end
    end

    // ---- clk ----
    reg [4:0] write_gray_1;
    reg [4:0] write_gray_2;
    reg [4:0] read_pointer;
    reg       overflow_1;
    reg       overflow_2;
    reg       overflow_3;
    reg [3:0] waited;

    initial begin
        read_gray = 5'd0;
        write_gray_1 = 5'd0;
        write_gray_2 = 5'd0;
        read_pointer = 5'd0;
        overflow_1 = 1'b0;
        overflow_2 = 1'b0;
        overflow_3 = 1'b0;
    end

    wire [4:0] written = ungray(write_gray_2);
    wire [4:0] level = written - read_pointer;
    wire [10:0] head = memory[read_pointer[3:0]];
    wire head_first = head[10];
    wire head_dv = head[9];
    wire present = level != 5'd0;
    wire start = present && head_first && (level >= FILL || waited == PATIENCE);
    // Behind a burst without its marker the next one waits for a cycle, so that they stay apart.
    wire give = dv ? present && head_dv && !head_first : start;
    wire discard = present && !(dv ? head_dv : head_first);
    wire [4:0] read_next = read_pointer + {4'd0, give || discard};

    always @(posedge clk) begin
        write_gray_1 <= write_gray;
        write_gray_2 <= write_gray_1;
        overflow_1 <= overflow;
        overflow_2 <= overflow_1;
        overflow_3 <= overflow_2;
        read_pointer <= rst ? written : read_next;
        read_gray <= gray(rst ? written : read_next);
        waited <= present && !dv && !start ? waited + {3'd0, waited != PATIENCE} : 4'd0;
        dv <= give;
        er <= give && head[8];
        data <= give ? head[7:0] : 8'd0;
        slip <= (dv && !give && !discard) || overflow_2 != overflow_3;
        if (rst) begin
            waited <= 4'd0;
            dv <= 1'b0;
            er <= 1'b0;
            slip <= 1'b0;
        end
    end
endmodule

`default_nettype wire
