/*
 * Text in other alphabets, escapes, wide and concatenated strings survive, and columns with them.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start, arrive @p
 * trace: 10ms worker release @p, end
 * output: größer "als" / 日本 \n %
 */
#include <cilktc.h>
#include <wchar.h>

task worker()
{
	const wchar_t *wide = L"weit" L"er"; /* größer */ fdelay(10, ms); /* @p */

	if (wide[0] == L'w')
		printf("größer \"als\" / " "日本" " \\n %%\n"); /* ü */
}

int main(void) { worker(); }
