# remove_directory PATH: one below /var/lib/slipway/script, with all that is in it.
set -eu
case $1 in /var/lib/slipway/script/*) rm -rf "$1" ;; esac
