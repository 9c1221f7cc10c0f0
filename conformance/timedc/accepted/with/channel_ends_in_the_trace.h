#pragma once

int fifochannel(lamp);

static inline void light(int level)
{
	cwrite(lamp, level); /* @h */
}
