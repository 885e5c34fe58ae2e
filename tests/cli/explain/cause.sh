# SPDX-License-Identifier: Apache-2.0
# What is known of a cause.
cuwhy explain oom-capacity | grep -c . | sed 's/[0-9][0-9]*/some/'
cuwhy explain --json oom-capacity | grep -o '^{"schema":1,"id":"oom-capacity"'
