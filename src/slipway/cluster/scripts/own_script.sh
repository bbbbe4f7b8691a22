# own_script DIRECTORY SECONDS: the package's script in DIRECTORY, with the options and variables in DIRECTORY/given. What it
# printed is printed at its end, without tokens, keys, hashes and logins; DIRECTORY goes.
set -u
directory=$1 seconds=$2
cd "$directory" || exit 1
hidden='s/[a-z0-9]{6}\.[a-z0-9]{16}/***/g
s/[0-9a-fA-F]{64}/***/g
s/eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]*/***/g
s#(://)[^/@[:space:]]+@#\1***@#g
s/((token|password|secret|(certificate|cert|private)[ _-]?key)"?[[:space:]]*[:=]).*/\1 ***/I'
tell() {
    [ ! -e stdout ] || sed -E "$hidden" stdout
    [ ! -e stderr ] || sed -E "$hidden" stderr >&2
    cd /
    rm -rf "$directory"
}
trap 'tell' EXIT
trap 'exit 143' TERM INT HUP
set --
. ./given
timeout --kill-after=10 "$seconds" ./script "$@" >stdout 2>stderr </dev/null
code=$?
case $code in
124 | 137) echo "the script did not end within $seconds s" >>stderr ;;
126 | 127) echo "the script can't be run: see that its first line names a program of this machine" >>stderr ;;
esac
exit "$code"
