# push_manifest FILE REPOSITORY REFERENCE MEDIA_TYPE DIGEST URL: the document beside an archive becomes an image's manifest.
set -eu
archive=/var/lib/slipway/files/$1 url=$6/v2/$2/manifests/$3
answer=$(mktemp)
trap 'rm -f "$answer"' EXIT
ask() { curl -q --config "$archive.login" --globoff --silent --show-error --insecure --noproxy '*' --connect-timeout 20 --max-time 100 "$@"; }
has=$(ask --head --header "Accept: $4" "$url" | tr -d '\r' | sed -n 's/^[Dd]ocker-[Cc]ontent-[Dd]igest: *//p')
[ "$has" != "$5" ] || exit 0
code=$(ask --upload-file "$archive.document" --request PUT --header "Content-Type: $4" --output "$answer" --write-out '%{http_code}' "$url")
[ "$code" = 201 ] || { echo "the registry refused $2:$3 with HTTP $code: $(head -c 300 "$answer")" >&2; exit 1; }
