# SPDX-License-Identifier: Apache-2.0
# A GPU that cannot be simulated: said before the program starts.
cuwhy run --gpu sim:rtx9999,memory=1G echo started
