# SPDX-License-Identifier: Apache-2.0
# A machine without a GPU and a driver: nothing that only follows from it, but what is known of PyTorch and its packages.
cat >bundle.json <<'END'
{"cuwhy_bundle": 1, "host": {"kernel": {"nvidia": false}, "container": {"kind": "none"}, "wsl": {"version": 0}, "gpu": [], "node": []},
 "variables": {}, "nvml": {"trouble": "no-library"}, "cuda": {"trouble": "no-library"},
 "python": {"environments": [{"prefix": "/v", "torch": {"version": "2.11.0+cu130", "build": "cuda", "cuda": "13.0"}}]}}
END
cuwhy doctor bundle.json
