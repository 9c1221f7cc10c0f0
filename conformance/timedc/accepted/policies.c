/*
 * spolicy, aperiodic and spriority change no instant of virtual time.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 a start, arrive @a
 * trace: 10ms a release @a, end
 * trace: 0 b start, arrive @b
 * trace: 20ms b release @b, end
 * trace: 0 c start, arrive @c
 * trace: 30ms c release @c, end
 * trace: 0 d start, arrive @d
 * trace: 40ms d release @d, end
 * trace: 0 e start, arrive @e
 * trace: 50ms e release @e, end
 * trace: 0 f start, end
 * trace: 0 g start, end
 */
#include <cilktc.h>

task a() { spolicy(EDF); fdelay(10, ms); /* @a */ }
task b() { spolicy(FIFO_RM); fdelay(20, ms); /* @b */ }
task c() { spolicy(RR_RM); fdelay(30, ms); /* @c */ }
task d() { spolicy(FIFO_DM); ftp(40, 30, ms); /* @d */ }
task e() { spolicy ( RR_DM ) ; stp(50, 5, ms); /* @e */ }
task f() { spolicy(FIFO_RM); aperiodic(100, ms); }
task g() { spriority(20); }

int main(void)
{
	a(); b(); c(); d(); e(); f(); g();
}
