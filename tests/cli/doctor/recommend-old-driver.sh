# SPDX-License-Identifier: Apache-2.0
# A driver that does not know the GPU.
cuwhy doctor --recommend --gpu rtx5090 --driver 550
