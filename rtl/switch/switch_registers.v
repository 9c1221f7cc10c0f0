// What is set and read from outside over the register bus.
//
// Timing: `ready` is high in the third cycle of an access.
//
// address      meaning (words of 32 bits; what is not named reads as 0 and cannot be written)
// 0x000        0x41545357, "ATSW"
// 0x001        version of this map: 2
// 0x002        policy: 0 ABORT_RETRY, 1 ABORT_DROP, 2 FINISH, 3 QBU; another value is not taken
// 0x003        longest real-time frame in octets with its FCS, 64 to 4000; after a reset 1522
// 0x004        read only: cycles from the SFD on the received stream to the SFD on the pins
// 0x005        read only: bit i is 1 if the link of port i is up
// 0x006        bit i is 1 if port i may bring NC-SYNC; after a reset 15
// 0x007        cycles of a round from which on the next NC-SYNC is let pass; after a reset 0
// 0x008        cycles from which on a round has lasted too long: the switch is not synchronised
//              until the next NC-SYNC. 0, as after a reset: it never is
// 0x009        read only: 1 if the switch is synchronised
// 0x010 + i    number of windows of port i, 0 to 32; 0, as after a reset: it has none, and brings
//              NC-DATA at any time
// 0x200 + 64 i + 2 k      window k of port i: write only, the place in which it opens
// 0x201 + 64 i + 2 k      the same, the place in which it closes
// 0x100 + 32 i counters of port i, read only:
//   0 rt_in         real-time frames that were received, with all that are dropped or damaged
//   1 rt_out        real-time frames whose transmission began
//   2 rt_bad_fcs    of rt_in: 64 octets or more, with a wrong FCS or an error
//   3 rt_runts      of rt_in: less than 64 octets
//   4 rt_cut        of rt_in: longer than the longest, or than its window; cut there
//   5 collisions    of rt_in: dropped, as another one was on the bus
//   6 guarded       of rt_in: dropped by the guardian, as in no window, or no NC-SYNC in time
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
//
// Places, and how windows of a port follow each other, are in round_counter.v and guardian.v. All
// have 28 bits; a greater value is not taken. Windows of different ports are apart by a gap, or one
// station takes another's slot; that is for who writes them.
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
    output reg  [3:0]   sync_ports,
    output reg  [27:0]  round_least,
    output reg  [27:0]  round_limit,
    input  wire         synchronised,
    output reg  [23:0]  window_number,
    output reg  [3:0]   write_open,
    output reg  [3:0]   write_close,
    output reg  [4:0]   write_index,
    output reg  [27:0]  write_value,
    input  wire [3:0]   link_up,
    output wire [4:0]   counter,
    input  wire [127:0] counter_value
);
    localparam [31:0] NAME = 32'h41545357;
    localparam [31:0] VERSION = 32'd2;
    localparam [31:0] SFD_LATENCY = LATENCY;
    localparam [11:0] MAX_LENGTH = 12'd1522;

    reg [1:0]  step;
    reg [3:0]  link_1;
    reg [3:0]  link_2;
    reg [31:0] value;

    wire begins = (write || read) && step == 2'd0 && !ready;
    wire is_counter = address[23:7] == 17'd2;
    wire is_number = address[23:2] == 22'd4;
    wire is_window = address[23:8] == 16'd2;
    wire [1:0] port = is_counter ? address[6:5] : address[1:0];
    wire [3:0] window_port = 4'd1 << address[7:6];
    wire is_place = write_data[31:28] == 4'd0;

    assign counter = address[4:0];

    always @* begin
        value = 32'd0;
        if (is_counter)
            value = counter_value[port * 32 +: 32];
        else if (is_number)
            value = {26'd0, window_number[port * 6 +: 6]};
        else case (address)
            24'd0: value = NAME;
            24'd1: value = VERSION;
            24'd2: value = {30'd0, policy};
            24'd3: value = {20'd0, max_length};
            24'd4: value = SFD_LATENCY;
            24'd5: value = {28'd0, link_2};
            24'd6: value = {28'd0, sync_ports};
            24'd7: value = {4'd0, round_least};
            24'd8: value = {4'd0, round_limit};
            24'd9: value = {31'd0, synchronised};
            default: value = 32'd0;
        endcase
    end

    always @(posedge clk) begin
        link_1 <= link_up;
        link_2 <= link_1;
        step <= begins ? 2'd1 : step == 2'd1 ? 2'd2 : 2'd0;
        ready <= step == 2'd1;
        read_data <= value;
        write_open <= begins && write && is_window && is_place && !address[0] ? window_port : 4'd0;
        write_close <= begins && write && is_window && is_place && address[0] ? window_port : 4'd0;
        write_index <= address[5:1];
        write_value <= write_data[27:0];
        if (begins && write) begin
            if (address == 24'd2 && write_data < 32'd4)
                policy <= write_data[1:0];
            if (address == 24'd3 && write_data >= 32'd64 && write_data <= 32'd4000)
                max_length <= write_data[11:0];
            if (address == 24'd6 && write_data < 32'd16)
                sync_ports <= write_data[3:0];
            if (address == 24'd7 && is_place)
                round_least <= write_data[27:0];
            if (address == 24'd8 && is_place)
                round_limit <= write_data[27:0];
            if (is_number && write_data <= 32'd32)
                window_number[port * 6 +: 6] <= write_data[5:0];
        end
        if (rst) begin
            step <= 2'd0;
            ready <= 1'b0;
            policy <= 2'd0;
            max_length <= MAX_LENGTH;
            sync_ports <= 4'd15;
            round_least <= 28'd0;
            round_limit <= 28'd0;
            window_number <= 24'd0;
            write_open <= 4'd0;
            write_close <= 4'd0;
        end
    end
endmodule

`default_nettype wire
