# SPDX-License-Identifier: Apache-2.0
# A program killed by a signal: 128+N.
cuwhy run sh -c 'kill -9 $$'
