# expect: OB6006 line 4, OB6006 line 5, OB6006 line 6, OB6006 line 7, OB6006 line 8, OB6006 line 9
station a
begin: sync slave, 1 ms
    create
    nop nop
    receive m b
    branch 5, begin
    sync peer
    branch count(1), begin
    goto begin
