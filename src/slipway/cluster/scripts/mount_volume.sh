# mount_volume ID PATH: the volume that the VIM calls ID is mounted at PATH, now and at each boot. Prints its UUID.
# An empty one gets a file system, which bears our label. One that holds anything else is left as it is.
# Exit codes: 66 no such disk, 65 it holds something else, 73 PATH can't be used, 69 a program is missing.
set -eu
id=$1 path=$2 label=slipway begun=/var/lib/slipway/formatting
fail() { echo "$2" >&2; exit "$1"; }
for program in blkid mkfs.ext4 blockdev flock findmnt mountpoint; do
    command -v "$program" >/dev/null || fail 69 "there is no $program (packages e2fsprogs and util-linux)"
done
mkdir -p "$begun"
exec 9>"$begun/.lock"
flock 9

# Names like vdb depend on what else is attached, and an empty disk that is not ours must not become ours. The serial
# number is the VIM's id; a disk of virtio tells 20 characters of it.
short=$(printf %.20s "$id")
find_devices() {
    for link in /dev/disk/by-id/*; do
        case ${link##*/} in *[-_]"$id" | *[-_]"$short") readlink -f "$link" ;; esac
    done | sort -u
}
for second in $(seq 30); do
    devices=$(find_devices)
    [ -z "$devices" ] || break
    sleep 1
done
[ -n "$devices" ] || fail 66 "no disk bears the id $id; there are: $(ls /dev/disk/by-id 2>/dev/null | tr '\n' ' ')"
[ "$(echo "$devices" | wc -l)" = 1 ] || fail 66 "several disks bear the id $id: $(echo $devices)"
device=$devices
[ -b "$device" ] || fail 66 "$device is no block device"
# One that is being attached or detached has none: it looks empty, and what it holds shows later.
for second in $(seq 10); do
    [ "$(blockdev --getsize64 "$device")" = 0 ] || break
    sleep 1
done
[ "$(blockdev --getsize64 "$device")" != 0 ] || fail 66 "$device ($id) has no size; is it attached?"

# A disk that can't be read is not blank: cmp fails over it, as over any byte that is not zero.
is_blank() {
    size=$(blockdev --getsize64 "$device") first=16777216 last=0
    [ "$size" -ge "$first" ] || first=$size
    [ "$size" -lt 1048576 ] || last=$((size - 1048576))
    cmp -s -n "$first" "$device" /dev/zero && cmp -s -i "$last:0" -n $((size - last)) "$device" /dev/zero
}
on_it() { blkid -p -s "$1" -o value "$device" || true; }
# Whoever died while making the file system left a mark, which is for this volume and for no other: the UUID that it was
# to get. What has come to the disk since has another one, or none that blkid knows.
mark=$begun/$id code=0
found=$(blkid -p -o export "$device") || code=$?
intended=$(cat "$mark" 2>/dev/null) || intended=
is_to_be_made() {
    if [ "$code" = 2 ]; then [ -e "$mark" ] || is_blank; else [ -n "$intended" ] && [ "$(on_it UUID)" = "$intended" ]; fi
}
if is_to_be_made; then
    [ -n "$intended" ] || intended=$(cat /proc/sys/kernel/random/uuid)
    echo "$intended" >"$mark"
    sync
    mkfs.ext4 -q -F -m 0 -L "$label" -U "$intended" "$device"
    sync
    rm "$mark"
    sync
elif [ "$code" != 0 ] || [ "$(on_it TYPE)" != ext4 ] || [ "$(on_it LABEL)" != "$label" ]; then
    rm -f "$mark"
    what=$(echo "$found" | grep -E '^(TYPE|PTTYPE|LABEL)=' | tr '\n' ' ')
    fail 65 "$device ($id) holds something that is not ours (${what:-data without a file system})"
else
    rm -f "$mark"
fi
uuid=$(on_it UUID)
is_mounted() { [ "$(mountpoint -d "$path")" = "$(mountpoint -x "$device")" ]; }

# Before /etc/fstab has a word of it: else the next boot would hide what is there.
if mountpoint -q "$path"; then
    is_mounted || fail 73 "another disk is mounted at $path"
else
    mkdir -p "$path"
    [ -z "$(ls -A "$path")" ] || fail 73 "$path is not empty, and what is in it would be hidden"
fi
touch /etc/fstab
there=$(awk -v path="$path" '$1 !~ /^#/ && $2 == path { print $1 }' /etc/fstab)
case $there in
"UUID=$uuid") ;;
"")
    cp /etc/fstab /etc/fstab.slipway
    sed -i '$a\' /etc/fstab.slipway   # the last line may lack its end
    echo "UUID=$uuid $path ext4 defaults,nofail 0 2" >>/etc/fstab.slipway
    mv /etc/fstab.slipway /etc/fstab
    [ ! -d /run/systemd/system ] || systemctl daemon-reload
    ;;
*) fail 73 "/etc/fstab has $there for $path already" ;;
esac
if ! mountpoint -q "$path"; then
    mount "$device" "$path"   # not by its UUID: a link for that may come later, and nofail hides that there is none
fi
is_mounted || fail 73 "another disk is mounted at $path"
echo "$uuid"
