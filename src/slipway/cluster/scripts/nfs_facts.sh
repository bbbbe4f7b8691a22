# nfs_facts ROLE: the packages that a server or client of NFS needs and that are not there, a line each. Of a server, before
# them, what it can run: kernel, or ganesha where the kernel has no NFS server or is not this machine's own.
set -eu
has() { dpkg-query --show --showformat '${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed; }
if [ "$1" = server ]; then
    if [ -d /run/systemd/system ] && systemd-detect-virt --quiet --container; then kind=ganesha
    elif modprobe --quiet nfsd 2>/dev/null || true; grep -qw nfsd /proc/filesystems; then kind=kernel
    else kind=ganesha; fi
    echo "$kind"
    case $kind in kernel) set -- nfs-kernel-server ;; ganesha) set -- nfs-ganesha nfs-ganesha-vfs ;; esac
else
    set -- nfs-common
fi
for name; do has "$name" || echo "$name"; done
