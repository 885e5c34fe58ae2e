# SPDX-License-Identifier: Apache-2.0
# NVML is there, the driver is not.
export LD_LIBRARY_PATH=$BUILD/sim CUWHY_SIM=tiny
cuwhy memory
