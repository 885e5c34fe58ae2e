/* SPDX-License-Identifier: Apache-2.0
 * dlsym, as the program sees it: see arch_x86_64.S, which says why it jumps and has glibc's versions. The return address is in x30;
 * rec_dlsym_pick returns in x0 (value) and x1 (decided or not).
 */
	.text
	.globl	rec_dlsym
	.hidden	rec_dlsym
	.type	rec_dlsym, %function
	.p2align 4
rec_dlsym:
	.cfi_startproc
	hint	#34		/* bti c */
	stp	x29, x30, [sp, #-32]!
	.cfi_def_cfa_offset 32
	.cfi_offset 29, -32
	.cfi_offset 30, -24
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	mov	x2, x30
	bl	rec_dlsym_pick
	mov	x16, x1
	cbnz	x16, 1f
	ldp	x0, x1, [sp, #16]
1:	ldp	x29, x30, [sp], #32
	.cfi_def_cfa_offset 0
	.cfi_restore 29
	.cfi_restore 30
	cbnz	x16, 2f
	adrp	x16, rec_next_dlsym
	ldr	x16, [x16, :lo12:rec_next_dlsym]
	br	x16
2:	ret
	.cfi_endproc
	.size	rec_dlsym, .-rec_dlsym

	.globl	rec_dlsym_old
	.type	rec_dlsym_old, %function
	.set	rec_dlsym_old, rec_dlsym
	.globl	rec_dlsym_new
	.type	rec_dlsym_new, %function
	.set	rec_dlsym_new, rec_dlsym
	.symver	rec_dlsym_old, dlsym@GLIBC_2.17
	.symver	rec_dlsym_new, dlsym@@GLIBC_2.34
	.section .note.GNU-stack,"",%progbits
