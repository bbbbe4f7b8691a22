# absent_files SHA256...: print those that are neither here nor in place already.
set -eu
files=/var/lib/slipway/files
for digest; do
    [ -e "$files/$digest" ] || [ -e "$files/$digest.done" ] || echo "$digest"
done
