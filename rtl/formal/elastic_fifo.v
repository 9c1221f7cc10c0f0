// Properties of elastic_fifo, as the end of its module. Both clocks are free: any edges in any order.
//
// The pointers, as each side knows them, stay in order: reader's knowledge of the writer, reader,
// writer's knowledge of the reader. So no entry is overwritten before it is read, none is read
// before it is written; and each entry leaves as it was written.
    wire [4:0] of_write_2 = ungray(write_gray_2) - read_pointer;
    wire [4:0] of_write_1 = ungray(write_gray_1) - read_pointer;
    wire [4:0] distance = write_pointer - read_pointer;
    wire [4:0] to_read_1 = write_pointer - ungray(read_gray_1);
    wire [4:0] to_read_2 = write_pointer - ungray(read_gray_2);

    // Any one entry: what was written there last.
    (* anyconst *) reg [4:0] place;
    reg [10:0] kept;
    initial kept = 11'd0;
    always @(posedge rx_clk)
        if (write && write_pointer == place) kept <= {rx_dv && !open, rx_dv, rx_er, rxd};

    wire [4:0] place_distance = place - read_pointer;
    always @* begin
        assert (write_gray == gray(write_pointer));
        assert (read_gray == gray(read_pointer));
        assert (of_write_2 <= of_write_1);
        assert (of_write_1 <= distance);
        assert (distance <= to_read_1);
        assert (to_read_1 <= to_read_2);
        assert (to_read_2 <= 5'd16);
        if (place_distance < distance) assert (memory[place[3:0]] == kept);
        // What leaves has come: the entry is there, and is an octet of a burst.
        if (give) assert (of_write_2 != 5'd0 && head[9]);
        if (give && dv) assert (!head[10]);
        if (give && !dv) assert (head[10]);
    end
