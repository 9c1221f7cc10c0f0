# expect: OB6019 line 4, OB6019 line 5
station a
begin: sync slave, 1 ms
    goto begn
    future nowhere, 1 ms
    goto begin
