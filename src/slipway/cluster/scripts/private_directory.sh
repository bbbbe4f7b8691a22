# private_directory PATH: a directory that only root enters.
set -eu
umask 077
mkdir -p "$1"
chmod 700 "$1"
