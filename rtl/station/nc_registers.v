// What the application's bus reaches. Addresses count words of 32 bits; an access is held until
// `ready`.
//
//   000000  identity: 4e435354
//   000001  version: 1
//   000002  control: bit 0 runs the program, from its first instruction when it is set
//   000003  bit 0: frames have a VLAN tag
//   000004  address of the station, its first 2 octets;  000005 the last 4
//   000006  instructions of the program, 2 to the power of PROGRAM at most
//   000007  buffers, 256 at most
//   000008  flags: none is set at a start
//   000009  status: bit 0 link, 1 stopped by a trap, 2 an access was refused (cleared by writing)
//   00000a  trap: its code in bits 19:16, its address in bits 12:0
//   00002n  counters, from 0: rounds begun, rounds seen, data sent, data received, unknown, wrong
//           length, overwritten, damaged, syncs discarded, second masters, sync timeouts, overruns,
//           traps, malformed, runts, too long, slips of the clocks, bad preambles, best effort sent
//   1nnnnn  program: word n / 2, its high half if n is even, which is written first. It is resolved
//           with the tables as they are: they are loaded before. While stopped, as all below
//   2000nn  table of buffers: input in bit 21, words in bits 20:12, address in 11:0. A buffer that
//           is no input takes as many words half the memory further, too
//   3000nn  table of messages: known in bit 21, words in bits 20:12, address in 11:0, and as many
//           words half the memory further
//   40nnnn  memory of the buffers
//   5bbnnn  words of buffer bb (bits 16:9) from 0 (bits 8:0): read, or write of what is not
//           complete yet. While it runs, as below
//   6000bb  a write makes what was written to buffer bb complete
//
// An access to anything else has no effect, and reads 0.
// Memories are not cleared: who loads a program writes all rows of messages, and zeros to the
// words of its buffers.
`default_nettype none

module nc_registers #(
    // Instructions: 2 to the power of this, at most.
    parameter PROGRAM = 12
) (
    input  wire        clk,
    input  wire        rst,

    input  wire [23:0] address,
    input  wire [31:0] write_data,
    input  wire        write,
    input  wire        read,
    output reg  [31:0] read_data,
    output wire        ready,

    // The program runs; it does in the next cycle.
    output reg         runs,
    output reg         primes,
    output reg         has_tag,
    output reg  [47:0] source,
    output reg  [12:0] program_length,
    output reg  [8:0]  buffers,
    output reg  [15:0] flags,

    // A word of the program is loaded, until it is done.
    output wire        load_program,
    output reg  [31:0] program_high,
    input  wire        program_done,
    output wire        load_buffer_row,
    output wire        load_message_row,
    output wire        load_word,

    output wire        reads_buffer,
    output wire        writes_buffer,
    output wire        commits_buffer,
    input  wire        buffer_ready,
    input  wire        buffer_refused,
    input  wire [31:0] buffer_value,

    input  wire        link_up,
    input  wire        stopped,
    input  wire [3:0]  trap,
    input  wire [12:0] trap_address,
    input  wire        counts_trap,
    // What is counted, in the order of the counters; and one more timeout.
    input  wire [18:0] counts,
    input  wire        counts_no_wait
);
    localparam COUNTERS = 19, SYNC_TIMEOUTS = 10;
    localparam [31:0] LONGEST = 1 << PROGRAM;
    wire [3:0] region = address[23:20];
    // Each region ends with what it is of: behind that there is nothing.
    reg exists;
    always @* begin
        case (region)
            4'h1: exists = address[19:0] >> (PROGRAM + 1) == 20'd0;
            4'h4: exists = address[19:12] == 8'd0;
            4'h5: exists = address[19:17] == 3'd0;
            default: exists = address[19:8] == 12'd0;
        endcase
    end
    // Where it leads to is known in the second cycle of an access, and nothing is done before.
    reg of_register, of_program_word, of_program_high, of_buffer_row, of_message_row, of_word;
    reg of_buffer, of_commit, active;
    always @(posedge clk) begin
        of_register <= region == 4'h0 && exists;
        of_program_word <= region == 4'h1 && exists && address[0];
        of_program_high <= region == 4'h1 && exists && !address[0];
        of_buffer_row <= region == 4'h2 && exists;
        of_message_row <= region == 4'h3 && exists;
        of_word <= region == 4'h4 && exists;
        of_buffer <= (region == 4'h5 || region == 4'h6) && exists;
        of_commit <= region == 4'h6;
        active <= !rst && (write || read) && !ready;
    end
    wire writes = active && write;
    wire reads = active && read;

    // A register answers in the fifth cycle; buffers when they can.
    reg done;
    reg accessed, accessed_before;
    wire is_new = !accessed && !accessed_before && !done;
    wire accesses = (writes || reads) && is_new && !of_buffer && !load_program;
    wire loads = accesses && write && !runs;
    assign load_program = of_program_word && writes && !runs;
    assign load_buffer_row = loads && of_buffer_row;
    assign load_message_row = loads && of_message_row;
    assign load_word = loads && of_word;
    assign reads_buffer = runs && reads && of_buffer && !of_commit;
    assign writes_buffer = runs && writes && of_buffer && !of_commit;
    assign commits_buffer = runs && writes && of_buffer && of_commit;
    // Nothing is there to answer while the program is stopped, and nothing to read in a commit.
    wire is_impossible = of_buffer && (reads || writes) && (!runs || (read && of_commit));
    assign ready = (writes || reads)
        && (of_buffer ? buffer_ready || is_impossible : load_program ? program_done : done);

    reg was_refused;
    reg [3:0] last_trap;
    reg [12:0] last_trap_address;
    reg [31:0] counters [0:COUNTERS-1];
    wire writes_register = accesses && write && of_register;
    wire is_control = address[7:0] == 8'h02;
    wire starts = writes_register && is_control && write_data[0] && !runs;

    // Counters are registers, not a memory: many may count in one cycle.
    integer i;
    always @(posedge clk) begin
        for (i = 0; i < COUNTERS; i = i + 1)
            if (rst || primes) counters[i] <= 32'd0;
            else
                counters[i] <= counters[i] + {31'd0, counts[i]}
                    + {31'd0, i == SYNC_TIMEOUTS && counts_no_wait};
    end

    // Two steps: one of eight, then one of three.
    wire is_counter = address[7:5] == 3'd1 && address[4:0] < COUNTERS[4:0];
    reg [31:0] eighths [0:2];
    reg [31:0] counter;
    always @(posedge clk) begin
        eighths[0] <= counters[{2'd0, address[2:0]}];
        eighths[1] <= counters[{2'd1, address[2:0]}];
        eighths[2] <= counters[address[2:0] < 3'd3 ? {2'd2, address[2:0]} : 5'd0];
        counter <= eighths[address[4:3] == 2'd3 ? 2'd0 : address[4:3]];
    end
    reg [31:0] register;
    always @(posedge clk) begin
        case (address[7:0])
            8'h00: register <= 32'h4e435354;
            8'h01: register <= 32'd1;
            8'h02: register <= {31'd0, runs};
            8'h03: register <= {31'd0, has_tag};
            8'h04: register <= {16'd0, source[47:32]};
            8'h05: register <= source[31:0];
            8'h06: register <= {19'd0, program_length};
            8'h07: register <= {23'd0, buffers};
            8'h08: register <= {16'd0, flags};
            8'h09: register <= {29'd0, was_refused, stopped, link_up};
            8'h0a: register <= {12'd0, last_trap, 3'd0, last_trap_address};
            default: register <= 32'd0;
        endcase
    end
    reg shows_register, shows_counter;
    always @(posedge clk) begin
        shows_register <= of_register && !is_counter;
        shows_counter <= of_register && is_counter;
    end
    wire [31:0] register_value =
        shows_counter ? counter : shows_register ? register : 32'd0;
    reg [31:0] register_read;
    always @* read_data = of_buffer ? buffer_value : register_read;

    always @(posedge clk) begin
        if (rst) begin
            accessed <= 1'b0;
            accessed_before <= 1'b0;
            done <= 1'b0;
            runs <= 1'b0;
            primes <= 1'b0;
            has_tag <= 1'b0;
            source <= 48'd0;
            program_length <= 13'd0;
            buffers <= 9'd0;
            flags <= 16'd0;
            was_refused <= 1'b0;
            last_trap <= 4'd0;
            last_trap_address <= 13'd0;
        end else begin
            accessed <= accesses;
            // What is withdrawn has no answer.
            accessed_before <= accessed && (write || read);
            done <= accessed_before && (write || read);
            primes <= starts;
            if (primes) runs <= 1'b1;
            if (loads && of_program_high) program_high <= write_data;
            if (writes_register) begin
                case (address[7:0])
                    8'h02: if (!write_data[0]) runs <= 1'b0;
                    8'h08: flags <= write_data[15:0];
                    8'h09: was_refused <= 1'b0;
                    default: ;
                endcase
                if (!runs) begin
                    case (address[7:0])
                        8'h03: has_tag <= write_data[0];
                        8'h04: source[47:32] <= write_data[15:0];
                        8'h05: source[31:0] <= write_data;
                        8'h06:
                            program_length <=
                                write_data > LONGEST ? LONGEST[12:0] : write_data[12:0];
                        8'h07: buffers <= write_data > 32'd256 ? 9'd256 : write_data[8:0];
                        default: ;
                    endcase
                end
            end
            if (buffer_refused || is_impossible) was_refused <= 1'b1;
            if (starts) begin
                flags <= 16'd0;
                last_trap <= 4'd0;
                last_trap_address <= 13'd0;
            end else if (counts_trap) begin
                last_trap <= trap;
                last_trap_address <= trap_address;
            end
        end
        register_read <= register_value;
    end
endmodule

`default_nettype wire
