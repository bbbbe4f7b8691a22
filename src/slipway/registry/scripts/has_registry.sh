# has_registry: "yes" if the distribution's registry is here.
set -eu
! command -v docker-registry >/dev/null || echo yes
