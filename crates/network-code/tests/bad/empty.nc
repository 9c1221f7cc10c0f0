# expect: OB6046 line 1
station a
medium 100 Mbit/s
