/* SPDX-License-Identifier: Apache-2.0
 * dlsym, as the program sees it.
 *
 * glibc takes the return address for "who asks" (RTLD_NEXT, RTLD_DEFAULT), so forwarding must be a
 * jump: with a call, a library that looks up the next definition of its own function would be
 * given its own function again. rec_dlsym_pick answers in rax (value) and rdx (decided or not).
 */
	.text
	.globl	dlsym
	.type	dlsym, @function
	.p2align 4
dlsym:
	.cfi_startproc
	endbr64
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	movq	24(%rsp), %rdx
	call	rec_dlsym_pick
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	testq	%rdx, %rdx
	jnz	1f
	jmp	*rec_next_dlsym(%rip)
1:	ret
	.cfi_endproc
	.size	dlsym, .-dlsym
	.section .note.GNU-stack,"",@progbits
