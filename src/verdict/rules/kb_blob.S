/* SPDX-License-Identifier: Apache-2.0
 * Links the knowledge base into the program: build/kb.blob contains the signs (kb/signs) and the cause files
 * (kb/causes), each preceded by an empty line and a line "%%% <id>", causes followed by their program
 * (tools/make_kb.sh). Assembled with -DKB_BLOB='"build/kb.blob"'.
 */
	.section .rodata
	.balign 16
	.globl cuwhy_kb_start
	.globl cuwhy_kb_end
	.hidden cuwhy_kb_start
	.hidden cuwhy_kb_end
cuwhy_kb_start:
	.incbin KB_BLOB
cuwhy_kb_end:
	.byte 0
	.section .note.GNU-stack,"",@progbits
