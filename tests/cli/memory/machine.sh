# SPDX-License-Identifier: Apache-2.0
# Two GPUs, the driver's reserve, a process that ended, and what nobody owns.
export LD_LIBRARY_PATH=$BUILD/sim CUWHY_SIM=tiny
CUWHY_SIM_NVML=gpu=24G,reserved=400M,used=12G,proc=2147480001:10G,proc=2147480002:na:graphics,gpu=8G cuwhy memory
