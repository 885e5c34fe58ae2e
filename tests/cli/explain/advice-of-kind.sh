# SPDX-License-Identifier: Apache-2.0
# Advice fits where the program ran: no `docker run` for a pod, no driver of Linux's in WSL or where nvidia-smi answers.
said="RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver"
told() {
	printf '%s\n' "$1" "$said" > log
	printf '== %s\n' "$1"
	cuwhy explain log | sed -n '1p;/^  FIX/,/^  CONFIDENCE/p' | sed '$d'
}
told '$ python train.py'
told '$ kubectl logs trainer-0'
told '$ uname -r; 5.15.153.1-microsoft-standard-WSL2'
told 'nvidia-smi works, but'
told 'Warning  FailedScheduling  0/2 nodes are available: 2 Insufficient nvidia.com/gpu.'
