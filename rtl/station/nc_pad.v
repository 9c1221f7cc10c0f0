// Octets of a stream, CYCLES later.
`default_nettype none

module nc_pad #(
    parameter CYCLES = 0
) (
    input  wire       clk,
    input  wire       rst,
    input  wire       dv,
    input  wire       er,
    input  wire [7:0] data,
    output wire       late_dv,
    output wire       late_er,
    output wire [7:0] late_data
);
    generate
        if (CYCLES == 0) begin : none
            assign {late_dv, late_er, late_data} = {dv, er, data};
            wire unused = &{1'b0, clk, rst};
        end else begin : some
            reg [CYCLES-1:0] dvs, ers;
            reg [8*CYCLES-1:0] octets;
            wire [CYCLES:0] next_dvs = {dvs, dv};
            wire [CYCLES:0] next_ers = {ers, er};
            wire [8*CYCLES+7:0] next_octets = {octets, data};
            always @(posedge clk) begin
                dvs <= rst ? {CYCLES{1'b0}} : next_dvs[CYCLES-1:0];
                ers <= next_ers[CYCLES-1:0];
                octets <= next_octets[8*CYCLES-1:0];
            end
            assign late_dv = dvs[CYCLES-1];
            assign late_er = ers[CYCLES-1];
            assign late_data = octets[8*CYCLES-1 -: 8];
        end
    endgenerate
endmodule

`default_nettype wire
