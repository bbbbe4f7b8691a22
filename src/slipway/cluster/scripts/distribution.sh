# distribution: this system and those it is like, as words: "ubuntu debian".
set -eu
[ ! -f /etc/os-release ] || . /etc/os-release
echo "${ID:-} ${ID_LIKE:-}"
