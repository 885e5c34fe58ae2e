# SPDX-License-Identifier: Apache-2.0
# A machine that is only described: Windows, where the default wheel has no CUDA.
cuwhy doctor --recommend --gpu 'RTX 5090' --driver 570 --os windows
