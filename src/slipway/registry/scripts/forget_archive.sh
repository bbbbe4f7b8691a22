# forget_archive FILE: an archive that was sent, with what was made of it.
set -eu
rm -f "/var/lib/slipway/files/$1.part" "/var/lib/slipway/files/$1.member" "/var/lib/slipway/files/$1.document" "/var/lib/slipway/files/$1.login"
