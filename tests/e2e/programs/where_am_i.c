/* SPDX-License-Identifier: Apache-2.0
 * Says whether it runs with raised privileges and whether the recorder is in its memory. */
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
