#pragma once
#define PACE(n) sdelay(2 * (n), ms)
