# SPDX-License-Identifier: Apache-2.0
# A program that never hears of CUDA.
# expect-silent: exit=11
exit 11
