/* SPDX-License-Identifier: Apache-2.0
 * What a recorded driver function does: a column of kb/cuda_api.def, read by the recorder and by the CLI.
 */
#ifndef CUWHY_API_H
#define CUWHY_API_H

enum api_does {
	DOES_START	  = 1 << 0,	/* starts the driver: every library in a process tries it */
	DOES_ORDINAL	  = 1 << 1,	/* its last argument is the ordinal of a device */
	DOES_PROBE	  = 1 << 2,	/* fails in healthy programs */
	DOES_SYNC	  = 1 << 3,	/* waits for the GPU */
	DOES_SYNC_ALL	  = 1 << 4,	/* until all work is done */
	DOES_SYNC_STREAM  = 1 << 5,	/* until the work of the stream in its first argument is done */
	DOES_LOAD	  = 1 << 6,	/* loads code, also lazily: just-in-time compilation can take minutes */
	DOES_IMAGE	  = 1 << 7,	/* from memory that its second argument points to */
	DOES_FOREIGN	  = 1 << 8,	/* code compiled at run time, or not PyTorch's own */
	DOES_SET_FUNCTION = 1 << 9,	/* arguments: function, attribute, value */
	DOES_SET_KERNEL	  = 1 << 10,	/* arguments: attribute, value, kernel */
	DOES_GIVE	  = 1 << 11,	/* allocates memory: cw_call.out is its address */
	DOES_TAKE	  = 1 << 12,	/* frees memory: the first argument is its address, cw_call.out its size */
	DOES_TAKE_RANGE	  = 1 << 13,	/* likewise, but the second argument is its size */
	DOES_REQUEST	  = 1 << 14,	/* asks for memory: the second argument is its size */
	DOES_REQUEST_AREA = 1 << 15,	/* likewise: the third argument times the fourth */
	DOES_HOST	  = 1 << 16,	/* it is host memory */
	DOES_LOOKUP	  = 1 << 17,	/* asks for code by name or handle: if there is none, nothing has been lost yet */
};

#endif
