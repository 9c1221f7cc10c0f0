/*
 * Constructs may be spread over lines, squeezed together and spliced with backslashes. The place
 * of a point is the line of its name.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start, arrive @a
 * trace: 10ms worker release @a, arrive @a+7
 * trace: 20ms worker release @a+7
 * trace: 25ms worker arrive @c
 * trace: 30ms worker release @c, arrive @c+1
 * trace: 40ms worker release @c+1, end
 */
#include	<cilktc.h>
  #  define   TEN	10

task
worker
(
)
{ int n=0;
	fdelay /* @a */
	(
		TEN
		,
		ms
	)
	;
	fde\
lay(10, ms); if(n)n++;else{critical{__attribute__((exectime(5,ms)));}}
;	;fdelay(10,ms);   ; /* @c */
	sde\
lay \
(10, \
ms); n++;
}int
main(void){worker();}
