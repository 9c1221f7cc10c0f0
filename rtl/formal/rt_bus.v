// Properties of rt_bus, as the end of its module: one writer at a time, whose frame is whole.
    reg        was_reset;
    reg        valid_before;
    reg  [1:0] owner_before;
    reg  [1:0] state_before;
    reg  [3:0] grant_before;
    reg  [3:0] refused;
    reg  [7:0] octet_before;
    reg  [3:0] begun;  // octets of the frame before this one, at most 8
    initial was_reset = 1'b0;
    always @(posedge clk) begin
        was_reset <= rst || was_reset;
        valid_before <= valid && !rst;
        owner_before <= owner;
        state_before <= state;
        grant_before <= rst ? 4'd0 : grant;
        refused <= rst ? 4'd0 : announce & ~grant;
        octet_before <= line_data[{owner, 3'd0} +: 8];
        begun <= rst || !valid ? 4'd0 : begun + {3'd0, begun != 4'd8};
    end

    always @* if (was_reset) begin
        // At most one is let in, it has asked, and only while nothing is on the bus.
        assert ((grant & (grant - 4'd1)) == 4'd0);
        assert ((grant & ~announce) == 4'd0);
        if (valid) assert (grant == 4'd0);
        // Who was let in is the owner of the frame that begins; nobody else begins one.
        assert (valid && !valid_before == (grant_before != 4'd0) || !valid);
        if (valid && !valid_before) assert (grant_before[owner]);
        // A frame has one owner to its end, and begins with a whole preamble.
        if (valid && valid_before) assert (owner == owner_before);
        if (valid && begun < 4'd7) assert (data == 8'h55);
        if (valid && begun == 4'd7) assert (data == 8'hd5);
        if (valid && begun == 4'd8) assert (data == octet_before);
        if (valid_before && begun < 4'd8) assert (valid);
        // Who was not let in is counted.
        assert (collision == refused);
    end
