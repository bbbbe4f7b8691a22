# push_blob FILE MEMBER REPOSITORY DIGEST URL: a member of an archive, or with - the document beside it, into the registry,
# which sees whether it is what its digest says.
set -eu
archive=/var/lib/slipway/files/$1 member=$2 repository=$3 digest=$4 url=$5
answer=$(mktemp) upload=
ask() { curl -q --config "$archive.login" --globoff --silent --show-error --insecure --noproxy '*' --connect-timeout 20 "$@"; }
# A registry keeps what came of an upload that failed: a disk that is full would stay full, and take no retry. Its API
# removes only what the client knows the length of.
end() {
    rm -f "$answer"
    case $upload in "" | *[!0-9a-f-]*) return ;; esac
    begun=/var/lib/slipway-registry/docker/registry/v2/repositories/$repository/_uploads/$upload
    [ ! -f "$begun/data" ] || : >"$begun/data"   # the registry may have it open, and what is only removed still takes room
    rm -rf "$begun"
}
trap end EXIT
code=$(ask --head --output /dev/null --write-out '%{http_code}' "$url/v2/$repository/blobs/$digest")
[ "$code" != 200 ] || exit 0
ask --request POST --data '' --dump-header "$answer" --output /dev/null "$url/v2/$repository/blobs/uploads/"
location=$(tr -d '\r' <"$answer" | sed -n 's/^[Ll]ocation: *//p' | head -n 1)
case $location in
/*) location=$url$location ;;
"$url"/*) ;;
*) echo "the registry takes no upload: $(head -n 1 "$answer")" >&2; exit 1 ;;
esac
upload=${location%%\?*} upload=${upload##*/}
case $location in *\?*) location="$location&digest=$digest" ;; *) location="$location?digest=$digest" ;; esac
content() { if [ "$member" = - ]; then cat "$archive.document"; else tar -xOf "$archive.part" -- "$member"; fi; }
: >"$answer"
# Whoever can't write what comes may hang up before all is sent.
code=$(content | ask --upload-file - --request PUT --header 'Content-Type: application/octet-stream' --output "$answer" --write-out '%{http_code}' "$location") || true
[ "$code" = 201 ] || {
    echo "the registry refused $digest with HTTP $code: $(head -c 300 "$answer"); room on its disk: $(df -h --output=avail /var/lib/slipway-registry | tail -n 1)" >&2
    exit 1
}
upload=
