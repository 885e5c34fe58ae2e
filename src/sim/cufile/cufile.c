/* SPDX-License-Identifier: Apache-2.0
 * Stand-in for cuFile (GPUDirect Storage): it is refused, as on a machine without the file system driver it needs.
 * PyTorch calls it for torch.cuda.gds only.
 */
#include "sim/common/standin.h"

#include <sys/types.h>

enum { PLATFORM_NOT_SUPPORTED = 5007 };	/* CU_FILE_PLATFORM_NOT_SUPPORTED */

/* CUfileError_t: a code of cuFile's, then one of the driver's. Returned by value. */
struct file_error {
	int code;
	int driver;
};

#define FILE_REFUSED(name)                                                                       \
	STANDIN(struct file_error, name, (void))                                                 \
	{                                                                                        \
		return (struct file_error){.code = standin_refuse(#name, PLATFORM_NOT_SUPPORTED)}; \
	}

FILE_REFUSED(cuFileHandleRegister)
FILE_REFUSED(cuFileBufRegister)
FILE_REFUSED(cuFileBufDeregister)

/* Nothing was ever registered. */
STANDIN(void, cuFileHandleDeregister, (void *handle))
{
	(void)handle;
}

/* Bytes, or an error of cuFile's as a negative number. */
#define TRANSFER_REFUSED(name) \
	STANDIN(ssize_t, name, (void)) { return -standin_refuse(#name, PLATFORM_NOT_SUPPORTED); }

TRANSFER_REFUSED(cuFileRead)
TRANSFER_REFUSED(cuFileWrite)
