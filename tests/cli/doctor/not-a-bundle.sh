# SPDX-License-Identifier: Apache-2.0
# A file that is no bundle is refused in words.
echo '{"cuwhy_bundle": 1, "nvml": {"gpus": [{"mig": "yes"}]}}' >bundle.json
cuwhy doctor bundle.json
