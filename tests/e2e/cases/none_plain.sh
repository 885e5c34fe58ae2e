# SPDX-License-Identifier: Apache-2.0
# A program that has nothing to do with CUDA.
# expect-silent: exit=11
exit 11
