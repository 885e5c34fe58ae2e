# SPDX-License-Identifier: Apache-2.0
# NVML is there, the driver is not.
export LD_LIBRARY_PATH=$BUILD/sim CUWHY_SIM=tiny CUWHY_SIM_NVML=fail=nvmlInit_v2:9
cuwhy memory
