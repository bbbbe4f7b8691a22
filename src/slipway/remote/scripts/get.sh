# Print a file. Argument: path. Exit code 66: there is none.
[ -e "$1" ] || [ -L "$1" ] || exit 66
exec cat "$1"
