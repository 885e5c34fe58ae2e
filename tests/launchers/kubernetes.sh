#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The manifest for Kubernetes, checked against its schemas: kubernetes-validate from PyPI, in a folder of its own.
set -eu
. "$(dirname "$0")/common.sh"
tools=${CUWHY_TOOLS:-$HOME/.cache/cuwhy/tools/kubernetes-validate}
if [ ! -d "$tools/kubernetes_validate" ]; then
	"$python" -m pip install -q --target "$tools" kubernetes-validate || { echo "skip - kubernetes.sh: kubernetes-validate cannot be installed"; exit 77; }
fi
PYTHONPATH=$tools "$python" -m kubernetes_validate --strict "$root/tests/launchers/kubernetes.yaml" || PYTHONPATH=$tools "$python" "$tools/bin/kubernetes-validate" --strict "$root/tests/launchers/kubernetes.yaml"
echo "ok - kubernetes.yaml is valid"
