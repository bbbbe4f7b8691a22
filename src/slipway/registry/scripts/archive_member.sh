# archive_member FILE MEMBER LIMIT: a small file of an archive, written beside it; prints where.
set -eu
umask 077
archive=/var/lib/slipway/files/$1
timeout 240 tar -xOf "$archive.part" -- "$2" | head -c "$3" >"$archive.member"
echo "$archive.member"
