# SPDX-License-Identifier: Apache-2.0
# The version says what a bug report needs: the build, its parts, the system.
cuwhy --version
