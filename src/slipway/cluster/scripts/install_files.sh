# install_files: unpack the archive on stdin over the root, and print the names of those files that were not so before.
set -eu
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
tar -C "$new" -xpf -
cd "$new"
find . -type f | while read -r file; do
    path=${file#.}
    ! cmp -s "$file" "$path" || { chmod --reference="$file" "$path"; continue; }
    mkdir -p "$(dirname "$path")"
    cp -p "$file" "$path.slipway"
    mv "$path.slipway" "$path"
    echo "$path"
done
