/* SPDX-License-Identifier: Apache-2.0
 * Stands in for the shared CUDA runtime: it has one device and rejects others without asking the driver. */
int cudaSetDevice(int device);
int cudaSetDevice(int device)
{
	return device == 0 ? 0 : 101;
}
