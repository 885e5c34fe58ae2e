# SPDX-License-Identifier: Apache-2.0
# The same for programs.
cuwhy doctor --json --recommend --gpu A100 --driver 535 | head -c 330
