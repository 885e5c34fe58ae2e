/* SPDX-License-Identifier: Apache-2.0
 * dlsym, as the program sees it.
 *
 * glibc identifies the caller by the return address (RTLD_NEXT, RTLD_DEFAULT), so we must forward with a
 * jump: with a call, a library that looks up the next definition of its own function would get its own
 * function again. rec_dlsym_pick returns in rax (value) and rdx (decided or not).
 *
 * It has glibc's symbol versions, so that another preloaded library that looks up the next dlsym by version
 * finds this one and not the one in libc behind it.
 */
	.text
	.globl	rec_dlsym
	.hidden	rec_dlsym
	.type	rec_dlsym, @function
	.p2align 4
rec_dlsym:
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
	.size	rec_dlsym, .-rec_dlsym

	.globl	rec_dlsym_old
	.type	rec_dlsym_old, @function
	.set	rec_dlsym_old, rec_dlsym
	.globl	rec_dlsym_new
	.type	rec_dlsym_new, @function
	.set	rec_dlsym_new, rec_dlsym
	.symver	rec_dlsym_old, dlsym@GLIBC_2.2.5
	.symver	rec_dlsym_new, dlsym@@GLIBC_2.34
	.section .note.GNU-stack,"",@progbits
