# SPDX-License-Identifier: Apache-2.0
# The simulated driver: an answer for a GPU that is hidden, and the bundle says the same.
LD_LIBRARY_PATH=$BUILD/sim CUWHY_SIM=h200 CUWHY_SIM_NVML=gpu CUDA_VISIBLE_DEVICES=5 \
	cuwhy doctor --bundle bundle.json >first.txt
echo "exit $?"
stat -c %a bundle.json
sed -n 's/.*\(\[visible-devices-wrong\]\)/\1/p' first.txt
cuwhy doctor bundle.json >second.txt
echo "exit $?"
sed -n 's/.*\(\[visible-devices-wrong\]\)/\1/p' second.txt
