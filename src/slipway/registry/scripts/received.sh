# received FILE: how many bytes of a file have been sent to this machine.
set -eu
stat -c %s "/var/lib/slipway/files/$1.part" 2>/dev/null || echo 0
