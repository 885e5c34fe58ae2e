/* SPDX-License-Identifier: Apache-2.0
 * Links the knowledge base into the program: what src/knowledge/compile made of kb/signs and kb/causes. It refers to itself by distances
 * (base/ref.h), so it is read-only and the same in every process. Assembled with -DKB_BLOB='"build/kb.blob"'.
 */
	.section .rodata
	.balign 64
	.globl cuwhy_kb
	.hidden cuwhy_kb
cuwhy_kb:
	.incbin KB_BLOB
	.section .note.GNU-stack,"",@progbits
