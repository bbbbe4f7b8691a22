# install_image HOW WHAT NAME: the registry's own image: HOW is sent, and WHAT the archive; or pull, and WHAT its name. Prints
# the engine's path, and the image's id.
set -eu
. /etc/slipway/environment
if command -v docker >/dev/null && systemctl is-active --quiet docker; then engine=$(command -v docker); else engine=$(command -v podman); fi
if [ "$1" = sent ]; then
    archive=/var/lib/slipway/files/$2.part
    trap 'rm -f "$archive"' EXIT
    case $engine in *podman) load="load --quiet --input" ;; *) load="load --input" ;; esac
    said=$(timeout 900 "$engine" $load "$archive") || { echo "$3 holds no image that $engine takes" >&2; exit 1; }
    name=$(printf '%s\n' "$said" | sed -n 's/^Loaded image[^:]*: *//p' | head -n 1)
    [ -n "$name" ] || { echo "$3 holds no image with a name or id" >&2; exit 1; }
else
    timeout 900 "$engine" pull --quiet "$2" >/dev/null
    name=$2
fi
id=$("$engine" image inspect --format '{{.Id}}' "$name")
printf '%s %s\n' "$engine" "${id#sha256:}"
