// One octet of the CRC-32 of IEEE 802.3 clause 3.2.9, reflected. Combinational.
// It starts as 32'hffffffff. After a good frame with its FCS it is 32'hdebb20e3. The FCS that is
// sent is ~crc, least significant octet first.
`default_nettype none

module crc32 (
    input  wire [31:0] crc,
    input  wire [7:0]  octet,
    output wire [31:0] next
);
    function [31:0] after;
        input [31:0] value;
        integer bit_number;
        begin
            after = value;
            for (bit_number = 0; bit_number < 8; bit_number = bit_number + 1)
                after = {1'b0, after[31:1]} ^ (after[0] ? 32'hedb88320 : 32'h0);
        end
    endfunction

    assign next = after({crc[31:8], crc[7:0] ^ octet});
endmodule

`default_nettype wire
