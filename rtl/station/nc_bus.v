// The application's bus, whose pins may be far away: registers in both directions. A request that
// is held is seen inside one cycle later, its answer on the pins one cycle later than inside. It is
// one request: it is still on the pins in the cycle of its answer, and in the cycle before that.
// One that is withdrawn ends; what is changed of one counts when it is withdrawn and made again.
`default_nettype none

module nc_bus (
    input  wire        clk,
    input  wire        rst,
    // The pins.
    input  wire [23:0] bus_address,
    input  wire [31:0] bus_write_data,
    input  wire        bus_write,
    input  wire        bus_read,
    output reg  [31:0] bus_read_data,
    output reg         bus_ready,
    // Inside.
    output reg  [23:0] address,
    output reg  [31:0] write_data,
    output reg         write,
    output reg         read,
    input  wire [31:0] read_data,
    input  wire        ready
);
    wire is_answered = ready || bus_ready;
    always @(posedge clk) begin
        if (!write && !read) begin
            address <= bus_address;
            write_data <= bus_write_data;
        end
        write <= !rst && bus_write && !read && !is_answered;
        read <= !rst && bus_read && !bus_write && !write && !is_answered;
        bus_read_data <= read_data;
        bus_ready <= !rst && ready && (bus_write || bus_read);
    end
endmodule

`default_nettype wire
