# install_files: unpack the archive on stdin over the root, and print the names of those files that were not so before.
set -eu
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
tar -C "$new" -xpf -
cd "$new"
find . -type f | while read -r file; do
    path=${file#.}
    if cmp -s "$file" "$path"; then
        # Only if it is another: a change of the mode looks like a change of the file to whoever asks for its time.
        [ "$(stat -c %a "$file")" = "$(stat -c %a "$path")" ] || chmod --reference="$file" "$path"
        continue
    fi
    mkdir -p "$(dirname "$path")"
    cp -p "$file" "$path.slipway"
    mv "$path.slipway" "$path"
    echo "$path"
done
