/* SPDX-License-Identifier: Apache-2.0
 * Links sitecustomize.py into the program. Assembled with -DSTOP_BLOB='"src/cmd/fit/sitecustomize.py"'.
 */
	.section .rodata
	.balign 16
	.globl cuwhy_fit_stop
	.hidden cuwhy_fit_stop
cuwhy_fit_stop:
	.incbin STOP_BLOB
	.byte 0
	.section .note.GNU-stack,"",@progbits
