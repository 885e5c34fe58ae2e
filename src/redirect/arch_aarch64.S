/* SPDX-License-Identifier: Apache-2.0
 * dlopen and dlmopen, as the program sees them: see arch_x86_64.S, which says why it jumps. The return address is in x30.
 */
	.macro	OPEN name, path, next
	.globl	\name
	.type	\name, %function
	.p2align 4
\name:
	.cfi_startproc
	hint	#34		/* bti c */
	stp	x29, x30, [sp, #-48]!
	.cfi_def_cfa_offset 48
	.cfi_offset 29, -48
	.cfi_offset 30, -40
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	str	x2, [sp, #32]
	mov	x0, \path
	bl	redirect_library
	mov	x16, x0
	ldp	x0, x1, [sp, #16]
	ldr	x2, [sp, #32]
	mov	\path, x16
	ldp	x29, x30, [sp], #48
	.cfi_def_cfa_offset 0
	.cfi_restore 29
	.cfi_restore 30
	adrp	x16, \next
	ldr	x16, [x16, :lo12:\next]
	br	x16
	.cfi_endproc
	.size	\name, .-\name
	.endm

	.text
	OPEN	dlopen, x0, redirect_next_dlopen
	OPEN	dlmopen, x1, redirect_next_dlmopen
	.section .note.GNU-stack,"",@progbits
