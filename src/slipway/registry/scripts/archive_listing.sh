# archive_listing FILE: size and name of each plain file in an archive that was sent. Links and devices are not told.
set -eu
export LC_ALL=C
timeout 240 tar --numeric-owner --quoting-style=escape -tvf "/var/lib/slipway/files/$1.part" |
    awk '/^-/ && NF == 6 && length($6) < 300 { print $3, $6 }' | head -c 300000
