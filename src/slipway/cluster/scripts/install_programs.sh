# install_programs VERSION NAME SHA256 URL ...: fetch each file that is not here (URL; - is one that was sent), see that all
# are what their digests say, and only then put them in place. Images wait for containerd: import_file takes them.
# With a VERSION, which may be empty, the programs of Kubernetes must be of that one, and lie beside those in use.
set -eu
version=$1
shift
bin=${version:+/opt/kubernetes/$version/bin}
bin=${bin:-/usr/bin}
files=/var/lib/slipway/files
mkdir -p -m 700 "$files"
. /etc/slipway/environment

fetch() { # NAME URL FILE
    case $2 in https:*) onward==https ;; *) onward==http,https ;; esac
    (
        ulimit -f 8388608
        curl -q --globoff --silent --show-error --fail --location --max-redirs 5 --proto =http,https \
            --proto-redir "$onward" --connect-timeout 20 --max-time 1500 --speed-limit 1024 --speed-time 60 \
            --retry 2 --retry-delay 2 --output "$3" "$2"
    ) || { rm -f "$3"; echo "$1 can't be fetched from $2" >&2; exit 1; }
}

check() { # NAME SHA256 URL
    if [ -e "$files/$2" ] || [ -e "$files/$2.done" ]; then return 0; fi
    [ "$3" = - ] || fetch "$1" "$3" "$files/$2.part"
    found=$(sha256sum "$files/$2.part" | cut -d' ' -f1)
    if [ "$found" != "$2" ]; then
        rm -f "$files/$2.part"
        echo "$1 is not the file that was meant: its SHA-256 digest is $found, and $2 was expected" >&2
        exit 65
    fi
    mv "$files/$2.part" "$files/$2"
}

proven() { # NAME SHA256 URL
    if [ -z "$version" ] || [ -e "$files/$2.done" ]; then return 0; fi
    case $1 in
    kubeadm) asked='version -o short' ;;
    kubelet) asked=--version ;;
    *) return 0 ;;
    esac
    new=$(mktemp -d "$files/new.XXXXXXXXXX")
    trap 'rm -rf "$new"' EXIT
    chmod 700 "$files/$2"
    ln -s "$files/$2" "$new/$1" # under its own name: a program of many goes by that
    found=$("$new/$1" $asked) || { echo "$1 does not run" >&2; exit 65; }
    rm -rf "$new"
    [ "${found#Kubernetes }" = "v$version" ] ||
        { echo "$1 is ${found#Kubernetes }, and v$version is wanted" >&2; exit 65; }
}

program() { # FILE TARGET: in one move, so that nobody ever runs half of it
    mkdir -p "${2%/*}"
    cp --remove-destination "$1" "$2.slipway"
    chmod 755 "$2.slipway"
    sync "$2.slipway"
    mv -fT "$2.slipway" "$2"
}

unpacked() { # SHA256: leaves the content in $new
    new=$(mktemp -d "$files/new.XXXXXXXXXX")
    trap 'rm -rf "$new"' EXIT
    tar -C "$new" --no-same-owner -xf "$files/$1"
}

one_of() { # NAME SHA256 TARGET: a program, itself or in an archive
    tar -tf "$files/$2" >/dev/null 2>&1 || { program "$files/$2" "$3"; return 0; }
    unpacked "$2"
    found=$(find "$new" -type f -name "$1" | head -n 1)
    [ -n "$found" ] || { echo "there is no $1 in its archive" >&2; exit 65; }
    program "$found" "$3"
    rm -rf "$new"
}

all_of() { # SHA256 DIRECTORY: every program in an archive
    unpacked "$1"
    find "$new" -type f -perm -u+x | while read -r found; do program "$found" "$2/${found##*/}"; done
    rm -rf "$new"
}

has_unit() { systemctl cat "$1.service" >/dev/null 2>&1; }

kubelet_units() {
    ! has_unit kubelet || return 0
    mkdir -p /etc/systemd/system/kubelet.service.d
    cat >/etc/systemd/system/kubelet.service <<'UNIT'
[Unit]
Description=kubelet, the Kubernetes node agent
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0
[Service]
ExecStart=/usr/bin/kubelet
Restart=always
RestartSec=10
[Install]
WantedBy=multi-user.target
UNIT
    cat >/etc/systemd/system/kubelet.service.d/10-kubeadm.conf <<'UNIT'
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
UNIT
}

containerd_units() {
    directory=/etc/systemd/system/containerd.service.d
    if ! has_unit containerd; then
        cat >/etc/systemd/system/containerd.service <<'UNIT'
[Unit]
Description=containerd
After=network.target local-fs.target
[Service]
ExecStart=/usr/local/bin/containerd
Type=notify
Delegate=yes
KillMode=process
Restart=always
RestartSec=5
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity
OOMScoreAdjust=-999
[Install]
WantedBy=multi-user.target
UNIT
    elif [ ! -e /etc/systemd/system/containerd.service ]; then
        mkdir -p "$directory"
        printf '[Service]\nExecStart=\nExecStart=/usr/local/bin/containerd\n' >"$directory/slipway-program.conf"
    fi
    systemctl daemon-reload
    systemctl try-restart containerd
}

place() { # NAME SHA256 URL
    if [ "$1" = images ] || [ -e "$files/$2.done" ]; then return 0; fi
    case $1 in
    kubeadm | kubectl) program "$files/$2" "$bin/$1" ;;
    kubelet) program "$files/$2" "$bin/kubelet"; kubelet_units ;;
    runc) program "$files/$2" /usr/local/sbin/runc ;;
    crictl | helm) one_of "$1" "$2" "/usr/local/bin/$1" ;;
    cni-plugins) all_of "$2" /opt/cni/bin ;;
    containerd) all_of "$2" /usr/local/bin; containerd_units ;;
    *) echo "nobody knows where $1 belongs" >&2; exit 64 ;;
    esac
}

finish() { # NAME SHA256 URL
    if [ "$1" != images ]; then
        touch "$files/$2.done"
        rm -f "$files/$2"
    fi
}

each() { # FUNCTION NAME SHA256 URL...
    function=$1
    shift
    while [ $# -gt 0 ]; do
        "$function" "$1" "$2" "$3"
        shift 3
    done
}

each check "$@"
each proven "$@"
each place "$@"
each finish "$@"
