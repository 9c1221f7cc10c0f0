// Properties of elastic_fifo, as the end of its module. Both clocks are free: any edges in any
// order.
//
// The pointers, as each side knows them, stay in order: reader's knowledge of the writer, reader,
// writer's knowledge of the reader. So no entry is overwritten before it is read, and none is read
// before it is written. That each entry leaves as it was written is for a bounded run only.
    wire [4:0] of_write_2 = ungray(write_gray_2) - read_pointer;
    wire [4:0] of_write_1 = ungray(write_gray_1) - read_pointer;
    wire [4:0] distance = write_pointer - read_pointer;
    wire [4:0] to_read_1 = write_pointer - ungray(read_gray_1);
    wire [4:0] to_read_2 = write_pointer - ungray(read_gray_2);
    wire [4:0] to_read_3 = write_pointer - read_binary;

    // Any one entry: what was written there last.
    (* anyconst *) reg [4:0] place;
    reg [10:0] kept;
    initial kept = 11'd0;
    always @(posedge rx_clk)
        if (write && write_pointer == place) kept <= {rx_dv && !open, rx_dv, rx_er, rxd};

    reg was_reset;
    initial was_reset = 1'b0;
    always @(posedge clk) was_reset <= was_reset || rst;

    wire [4:0] place_distance = place - read_pointer;
    always @* begin
        assert (write_gray == gray(write_pointer));
        assert (read_gray == gray(read_pointer));
        assert (of_write_2 <= of_write_1);
        assert (of_write_1 <= distance);
        assert (distance <= to_read_1);
        assert (to_read_1 <= to_read_2);
        assert (to_read_2 <= to_read_3);
        assert (to_read_3 <= 5'd16);
`ifdef BOUNDED
        if (place_distance < distance) assert (memory[place[3:0]] == kept);
`endif
        // What leaves has come: the entry is there, and begins a burst or continues one.
        if (give && was_reset) assert (of_write_2 != 5'd0 && head[10] == !dv);
    end
