/* SPDX-License-Identifier: Apache-2.0
 * Reports whether it runs with elevated privileges and whether the recorder is loaded. */
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

int main(void)
{
	char line[512];
	int recorder = 0;
	FILE *maps = fopen("/proc/self/maps", "r");

	while (maps && fgets(line, sizeof(line), maps))
		recorder |= strstr(line, "libcuwhy") != NULL;
	printf("secure %lu\nrecorder %d\n", getauxval(AT_SECURE), recorder);
	return 0;
}
