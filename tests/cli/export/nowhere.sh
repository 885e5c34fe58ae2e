# SPDX-License-Identifier: Apache-2.0
# Without a place.
cuwhy export --torch-snapshot
