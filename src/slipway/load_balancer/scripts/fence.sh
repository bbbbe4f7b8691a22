# fence REVISION: note that this change has begun. When a later one has been here, it says so.
set -eu
umask 022
file=/var/lib/slipway/load-balancer.revision
mkdir -p /var/lib/slipway
exec 9>/run/slipway-load-balancer.lock
flock -w 60 9
noted=$(cat "$file" 2>/dev/null || echo 0)
[ "${noted:-0}" -le "$1" ] || { echo later; exit 0; }
echo "$1" >"$file.new"
mv "$file.new" "$file"
