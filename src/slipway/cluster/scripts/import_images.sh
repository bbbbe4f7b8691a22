# import_images NAME...: archives of container images that the machine's own image brings, each imported once.
set -eu
for name; do
    archive=/usr/share/slipway/images/$name.tar
    mark=/var/lib/containerd/.slipway-$name   # beside what was imported: both go together
    [ -f "$archive" ] && [ ! -f "$mark" ] || continue
    ctr -n k8s.io images import "$archive"
    touch "$mark"
done
