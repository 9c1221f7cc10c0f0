/*
 * main gets the command line's arguments and the environment.
 * duration: 1s
 * arguments: 12 x
 * trace: 0 main start, arrive @p
 * trace: 12ms main release @p, end
 * output: 3 x
 */
#include <cilktc.h>

int main(int argc, char *argv[], char **envp)
{
	(void)envp;
	sdelay(atoi(argv[1]), ms); /* @p */
	printf("%d %s\n", argc, argv[2]);
}
