# restart_kubelet VERSION FROM: the kubelet of that version, and kubectl with it; FROM packages it is in its place already.
set -eu
for program in kubelet kubectl; do
    new=/opt/kubernetes/$1/bin/$program
    [ "$2" = packages ] || [ ! -x "$new" ] || ln -sfn "$new" "/usr/bin/$program"
done
systemctl daemon-reload
systemctl restart kubelet
