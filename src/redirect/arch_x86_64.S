/* SPDX-License-Identifier: Apache-2.0
 * dlopen and dlmopen, as the program sees them. libc identifies the caller by the return address: the folders where it looks for a library,
 * and the name space, are the caller's. So we must go on with a jump.
 */
	.macro	OPEN name, path, next
	.globl	\name
	.type	\name, @function
	.p2align 4
\name:
	.cfi_startproc
	endbr64
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	movq	\path, %rdi
	call	redirect_library
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	movq	%rax, \path
	jmp	*\next(%rip)
	.cfi_endproc
	.size	\name, .-\name
	.endm

	.text
	OPEN	dlopen, %rdi, redirect_next_dlopen
	OPEN	dlmopen, %rsi, redirect_next_dlmopen
	.section .note.GNU-stack,"",@progbits
