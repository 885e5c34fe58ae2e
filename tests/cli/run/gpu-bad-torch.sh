# SPDX-License-Identifier: Apache-2.0
# A PyTorch that cannot run on a simulated GPU: one sentence that says which and why, and nothing is started.
export PYTHONPATH="$T/packages"
torch() {	# version, then the lines of its version.py
	rm -rf packages
	mkdir -p packages/torch/lib "packages/torch-$1.dist-info"
	printf 'Metadata-Version: 2.1\nName: torch\nVersion: %s\n' "$1" >"packages/torch-$1.dist-info/METADATA"
	{
		echo "__version__ = '$1'"
		shift
		printf '%s\n' "$@"
	} >packages/torch/version.py
	touch packages/torch/__init__.py
}
try() {
	cuwhy run --gpu sim:h200 --out o python3 -c 'print("started")'
	echo "$?, $(ls)"
}
{
	torch 2.6.0+cpu "cuda: Optional[str] = None" "hip: Optional[str] = None"
	try
	torch 2.6.0+rocm6.2 "cuda: Optional[str] = None" "hip: Optional[str] = '6.2.41133'"
	try
	torch 2.3.1+cu121 "cuda: Optional[str] = '12.1'" "hip: Optional[str] = None"
	try
	torch 2.6.0+cu118 "cuda: Optional[str] = '11.8'" "hip: Optional[str] = None"
	try
	torch 2.99.0+cu130 "cuda: Optional[str] = '13.0'" "hip: Optional[str] = None"
	try && rm -r o
	# as if its library needed a function of cuBLAS that there is none of
	echo 'int cublasFromTheFuture(void); int uses(void); int uses(void) { return cublasFromTheFuture(); }' >future.c
	${CC:-cc} -shared -fPIC -w -o packages/torch/lib/libtorch_cuda.so future.c && rm future.c
	try
	# the same through a script with Python in its first line
	printf '#!/usr/bin/env python3\nprint("started")\n' >script && chmod +x script
	cuwhy run --gpu sim:h200 ./script
	echo $?
} 2>&1
