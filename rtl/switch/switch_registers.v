// What is set and read from outside over the register bus.
//
// Timing: `ready` is high in the third cycle of an access.
//
// address      meaning (words of 32 bits; what is not named reads as 0 and cannot be written)
// 0x000        0x41545357, "ATSW"
// 0x001        version of this map: 1
// 0x002        policy: 0 ABORT_RETRY, 1 ABORT_DROP, 2 FINISH, 3 QBU; another value is not taken
// 0x003        longest real-time frame in octets with its FCS, 64 to 4000; after a reset 1522
// 0x004        read only: cycles from the SFD on the received stream to the SFD on the pins
// 0x005        read only: bit i is 1 if the link of port i is up
// 0x010 + 2 i  guardian of port i: cycles that a frame costs; 0, as after a reset: off
// 0x011 + 2 i  guardian of port i: frames that are saved up, 0 to 255. A write fills the bucket
// 0x100 + 32 i counters of port i, read only:
//   0 rt_in         real-time frames that were received, with all that are dropped or damaged
//   1 rt_out        real-time frames whose transmission began
//   2 rt_bad_fcs    of rt_in: 64 octets or more, with a wrong FCS or an error
//   3 rt_runts      of rt_in: less than 64 octets
//   4 rt_cut        of rt_in: longer than the longest; cut there
//   5 collisions    of rt_in: dropped, as another one was on the bus
//   6 guarded       of rt_in: dropped by the guardian
//   7 be_in         good best-effort frames that were received and had room
//   8 be_out        best-effort frames that were sent to their end
//   9 be_bad        best-effort frames with a wrong FCS or an error, or fragments that do not fit
//  10 be_runts      frames that are no real-time frames, of less than 64 octets
//  11 be_jumbos     best-effort frames of more than 1522 octets
//  12 be_full       best-effort frames that had no room at this output
//  13 aborts        best-effort frames that were aborted
//  14 retries       best-effort frames whose transmission began again
//  15 lost_to_abort best-effort frames that were aborted and dropped
//  16 slips         losses between the clocks of the port and the switch
//  17 bad_preambles bursts without an SFD behind their preamble
//  18 be_filtered   of be_in: for no other port, or for a reserved address
//  19 be_in_full    good best-effort frames that had no room at this input, or that came whole
//                   between the fragments of another one
//  20 rt_lost       real-time frames that were cut or dropped as they waited behind others
//  21 preemptions   best-effort frames of which a fragment was ended for a real-time frame
`default_nettype none

module switch_registers #(
    parameter LATENCY = 41
) (
    input  wire         clk,
    input  wire         rst,
    input  wire [23:0]  address,
    input  wire [31:0]  write_data,
    input  wire         write,
    input  wire         read,
    output reg  [31:0]  read_data,
    output reg          ready,
    output reg  [1:0]   policy,
    output reg  [11:0]  max_length,
    output reg  [127:0] guard_interval,
    output reg  [31:0]  guard_burst,
    output reg  [3:0]   guard_restart,
    input  wire [3:0]   link_up,
    output wire [4:0]   counter,
    input  wire [127:0] counter_value
);
    localparam [31:0] NAME = 32'h41545357;
    localparam [31:0] VERSION = 32'd1;
    localparam [31:0] SFD_LATENCY = LATENCY;
    localparam [11:0] MAX_LENGTH = 12'd1522;

    reg [1:0]  step;
    reg [3:0]  link_1;
    reg [3:0]  link_2;
    reg [31:0] value;

    wire begins = (write || read) && step == 2'd0 && !ready;
    wire is_counter = address[23:7] == 17'd2;
    wire is_guard = address[23:3] == 21'd2;
    wire [1:0] port = is_counter ? address[6:5] : address[2:1];

    assign counter = address[4:0];

    always @* begin
        value = 32'd0;
        if (is_counter)
            value = counter_value[port * 32 +: 32];
        else if (is_guard && address[0])
            value = {24'd0, guard_burst[port * 8 +: 8]};
        else if (is_guard)
            value = guard_interval[port * 32 +: 32];
        else case (address)
            24'd0: value = NAME;
            24'd1: value = VERSION;
            24'd2: value = {30'd0, policy};
            24'd3: value = {20'd0, max_length};
            24'd4: value = SFD_LATENCY;
            24'd5: value = {28'd0, link_2};
            default: value = 32'd0;
        endcase
    end

    always @(posedge clk) begin
        link_1 <= link_up;
        link_2 <= link_1;
        step <= begins ? 2'd1 : step == 2'd1 ? 2'd2 : 2'd0;
        ready <= step == 2'd1;
        read_data <= value;
        guard_restart <= 4'd0;
        if (begins && write) begin
            if (address == 24'd2 && write_data < 32'd4)
                policy <= write_data[1:0];
            if (address == 24'd3 && write_data >= 32'd64 && write_data <= 32'd4000)
                max_length <= write_data[11:0];
            if (is_guard && address[0])
                guard_burst[port * 8 +: 8] <= write_data[7:0];
            if (is_guard && !address[0])
                guard_interval[port * 32 +: 32] <= write_data;
            if (is_guard)
                guard_restart[port] <= 1'b1;
        end
        if (rst) begin
            step <= 2'd0;
            ready <= 1'b0;
            policy <= 2'd0;
            max_length <= MAX_LENGTH;
            guard_interval <= 128'd0;
            guard_burst <= 32'd0;
            guard_restart <= 4'd0;
        end
    end
endmodule

`default_nettype wire
