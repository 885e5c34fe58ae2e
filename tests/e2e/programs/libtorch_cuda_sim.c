/* SPDX-License-Identifier: Apache-2.0
 * Kernels of the simulated GPU that lie in a file which is called as PyTorch's own.
 */
const char stock_image[] =
	"cuwhy-sim-module 1\ntarget compute_50 ptx 7.0\nkernel nop\nkernel oob_store\nkernel spin\nkernel hang\n";
