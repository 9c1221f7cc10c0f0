#pragma once

extern int fifochannel(numbers);

task maker(int count);
void pause_shortly(void);
