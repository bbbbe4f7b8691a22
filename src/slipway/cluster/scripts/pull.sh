# pull IMAGE DIRECTORY: as pods' images are pulled, where the machine has a client of CRI; else with what DIRECTORY says
# of its registry. What it says when it fails is all on stderr.
set -eu
if command -v crictl >/dev/null 2>&1; then
    crictl --runtime-endpoint unix:///run/containerd/containerd.sock --timeout 840s pull "$1" >/dev/null
else
    ctr --namespace k8s.io images pull --hosts-dir "$2" "$1" >/dev/null
fi
