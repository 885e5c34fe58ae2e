# SPDX-License-Identifier: Apache-2.0
# The causes, with what they are.
cuwhy explain --list | grep -c .
cuwhy explain --list --json | grep -c '"id":"oom-capacity"'
