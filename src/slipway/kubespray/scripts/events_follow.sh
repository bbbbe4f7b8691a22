# What a run has reported since. Arguments: the file, bytes that are known already.
[ -f "$1" ] || exit 0
exec tail -c "+$(($2 + 1))" "$1"
