/* SPDX-License-Identifier: Apache-2.0
 * Links the report page into the program: build/report.html is what tools/page.py makes of web/src. Assembled with
 * -DPAGE_BLOB='"build/report.html"'.
 */
	.section .rodata
	.balign 16
	.globl cuwhy_page_start
	.globl cuwhy_page_size
	.hidden cuwhy_page_start
	.hidden cuwhy_page_size
cuwhy_page_start:
	.incbin PAGE_BLOB
.Lend:
	.byte 0
	.balign 8
cuwhy_page_size:
	.quad .Lend - cuwhy_page_start
	.section .note.GNU-stack,"",@progbits
