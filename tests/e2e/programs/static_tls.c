/* How many libraries with static thread-local storage can be loaded late: argv[1] up to argv[argc-1], one after the other. As a library
 * (-DLIBRARY), one of them. */
#include <dlfcn.h>
#include <stdio.h>

#ifdef LIBRARY
static __thread __attribute__((tls_model("initial-exec"))) char own[64];

char *where(void)
{
	return own;
}
#else
int main(int argc, char **argv)
{
	int n = 1;

	while (n < argc && dlopen(argv[n], RTLD_NOW))
		n++;
	printf("%d\n", n - 1);
	return 0;
}
#endif
