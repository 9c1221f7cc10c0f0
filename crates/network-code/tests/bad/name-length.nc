# expect: OB6009 line 3
station a
const nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn = 1
begin: sync slave, 1 ms
    goto begin
