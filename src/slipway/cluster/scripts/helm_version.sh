# helm_version: that of the Helm that is found first.
set -eu
PATH=/usr/local/bin:$PATH
command -v helm >/dev/null || { echo "there is no helm in /usr/local/bin or elsewhere" >&2; exit 127; }
HOME=${HOME:-/root} helm version --template '{{.Version}}'
