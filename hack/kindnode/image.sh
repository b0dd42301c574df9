#!/usr/bin/env bash
# Builds the image of a node for kind from source, for machines that cannot pull the published kindest/node, and prints
# the file, bin/kindnode/node-KEY.tar, which "docker load" can read. It contains Debian (by debootstrap), the files of
# kind's own base image from kind's module, and containerd, Kubernetes and the other programs of a node, built from Go
# modules. It needs no engine and no registry, but it needs root, for Debian. An image that exists for this state of the
# sources is not built again.
#   DEBIAN_MIRROR=http://...   where Debian is
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
work=$root/bin/kindnode
programs=$work/programs
controlplane=${MASTHEAD_CONTROLPLANE_BIN:-$root/bin/controlplane}
suite=bookworm
mkdir -p "$work"
. hack/kindnode/archive.sh
say() { echo "kind-node-image: $*" >&2; }

# The key covers everything that the image is made from, except the current state of Debian.
sources=$(find hack/kindnode -type f | LC_ALL=C sort | grep -vE '/(engine|images|e2e)\.sh$|/boundedrunc/' | xargs sha256sum)
key=$({ echo "$sources"; sha256sum hack/controlplane/kubernetes/go.{mod,sum}; go env GOVERSION GOARCH; } | sha256sum | cut -c1-12)
out=$work/node-$key.tar
if [[ -f $out ]]; then
  echo "$out"
  exit
fi

# Only one build runs at a time, in its own mount namespace, so that the mounts of debootstrap end with it.
if [[ -z ${KINDNODE_ALONE:-} ]]; then
  [[ $(id -u) == 0 ]] || {
    say "only root can make a node image, because of debootstrap; name one that can be pulled by E2E_KIND_IMAGE"
    exit 1
  }
  for program in debootstrap unshare chroot; do
    command -v $program >/dev/null || {
      say "cannot find $program (on Debian: apt-get install debootstrap), or name an image that can be pulled by E2E_KIND_IMAGE"
      exit 1
    }
  done
  for program in kube-apiserver kube-controller-manager etcd kubectl; do
    [[ -x $controlplane/$program ]] || {
      say "$controlplane has no $program: run make controlplane"
      exit 1
    }
  done
  KINDNODE_ALONE=1 exec flock "$work/.lock" unshare --mount "$0"
fi
begun=$SECONDS
step() { say "$((SECONDS - begun)) s: $*"; }
step "this takes five minutes on two cores with the Go build cache of make controlplane, ten without, and seconds when it is repeated"
step "building the programs"
hack/kindnode/programs.sh
kind_files=$(cd hack/kindnode/kind && GOWORK=off go list -m -f '{{.Dir}}' sigs.k8s.io/kind)/images/base/files
kubernetes=$(cd hack/controlplane/kubernetes && GOWORK=off go list -m -f '{{.Version}}' k8s.io/kubernetes)

packages=systemd,systemd-sysv,libseccomp2,runc,iptables,nftables,conntrack,iproute2,ethtool,socat,kmod,mount,util-linux
packages+=,procps,jq,ca-certificates,curl,e2fsprogs,pigz
debian=$work/debian-$(echo "$suite $packages" | sha256sum | cut -c1-12)
if [[ ! -d $debian ]]; then
  step "Debian $suite"
  rm -rf "$work/debian.new"
  debootstrap --variant=minbase --include="$packages" $suite "$work/debian.new" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >"$work/debootstrap.log" 2>&1 || {
    tail -n 20 "$work/debootstrap.log" >&2
    say "debootstrap has failed; its log is $work/debootstrap.log"
    exit 1
  }
  mv "$work/debian.new" "$debian"
fi

step "the files of a node"
node=$work/node
rm -rf "$node"
cp -a "$debian" "$node"
# As in kind's images/base/Dockerfile.
install -m 0755 "$kind_files"/usr/local/bin/* "$node/usr/local/bin/"
mkdir -p "$node"/{kind/bin,kind/manifests,etc/containerd,etc/systemd/system/kubelet.service.d,opt/cni/bin,etc/cni/net.d,etc/kubernetes/manifests,lib/modules}
install -m 0755 "$kind_files"/kind/bin/* "$node/kind/bin/"
install -m 0644 "$kind_files"/etc/containerd/config.toml "$node/etc/containerd/"
install -m 0644 "$kind_files"/etc/default/kubelet "$node/etc/default/"
install -m 0644 "$kind_files"/etc/sysctl.d/* "$node/etc/sysctl.d/"
install -m 0644 "$kind_files"/etc/crictl.yaml "$node/etc/"
install -m 0644 "$kind_files"/etc/systemd/system/{containerd.service,kubelet.service,undo-mount-hacks.service,kubelet.slice} "$node/etc/systemd/system/"
install -m 0644 "$kind_files"/etc/systemd/system/kubelet.service.d/* "$node/etc/systemd/system/kubelet.service.d/"
rm -f "$node"/lib/systemd/system/{multi-user,local-fs,basic}.target.wants/* "$node"/etc/systemd/system/*.wants/* \
  "$node"/lib/systemd/system/sockets.target.wants/*{udev,initctl}* \
  "$node"/lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service
echo ReadKMsg=no >>"$node/etc/systemd/journald.conf"
chroot "$node" systemctl enable --quiet kubelet.service containerd.service undo-mount-hacks.service
chroot "$node" systemctl mask --quiet systemd-binfmt.service
install -m 0755 "$programs"/{containerd,ctr,containerd-shim-runc-v2} "$node/usr/local/bin/"
install -m 0755 "$programs"/{ptp,loopback,host-local,portmap} "$node/opt/cni/bin/"
install -m 0755 "$programs"/{kubeadm,kubelet} "$controlplane/kubectl" "$node/usr/bin/"
printf %s "$kubernetes" >"$node/kind/version"
"$programs/ctr" oci spec | chroot "$node" jq '
  .hooks.createContainer[.hooks.createContainer | length] |= . + {path: "/kind/bin/mount-product-files.sh"} | del(.process.rlimits)
' >"$node/etc/containerd/cri-base.json"

# The differences from kind's image. kubelet 1.36 refuses cgroup v1, and a flag overrides the configuration that kubeadm
# writes.
sed -i 's/^KUBELET_EXTRA_ARGS=.*/& --fail-cgroupv1=false/' "$node/etc/default/kubelet"
# Without CAP_SYS_RESOURCE no process may lower oom_score_adj; kind's entrypoint does the same in a user namespace.
sed -i 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' "$node/etc/containerd/config.toml"
# kindnetd exists only as an image. kind applies this instead; from it test/kindfleet knows that it has to set up the
# network of the nodes.
cat >"$node/kind/manifests/default-cni.yaml" <<'CNI'
apiVersion: v1
kind: ConfigMap
metadata:
  name: nodes-without-network
  namespace: kube-system
CNI
cat >"$node/kind/manifests/default-storage.yaml" <<'STORAGE'
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: standard
  annotations:
    storageclass.kubernetes.io/is-default-class: "true"
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
STORAGE
# A node must not set sysctls of the whole machine, and each node needs its own identity.
rm -f "$node"/usr/lib/sysctl.d/{50-pid-max,99-protect-links}.conf "$node"/{var/lib/dbus,etc}/machine-id
rm -rf "$node"/var/cache/apt/* "$node"/var/lib/apt/lists/* "$node"/var/log/*.log "$node"/usr/share/{doc,man,locale,info}/*

step "the images of what runs in Pods"
images=$work/images
rm -rf "$images"
mkdir -p "$images"
mapfile -t names < <("$programs/kubeadm" config images list --kubernetes-version "$kubernetes" 2>/dev/null)
path='"Env":["PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]'
for name in "${names[@]}"; do
  program=$(basename "${name%:*}")
  folder=$images/$program
  mkdir -p "$folder"/{usr/local/bin,etc,tmp}
  entrypoint=/usr/local/bin/$program
  case $program in
    kube-apiserver | kube-controller-manager | etcd) install -m 0755 "$controlplane/$program" "$folder/usr/local/bin/" ;;
    kube-scheduler) install -m 0755 "$programs/$program" "$folder/usr/local/bin/" ;;
    coredns) install -m 0755 "$programs/$program" "$folder/" && entrypoint=/coredns ;;
    pause)
      CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$folder/pause" ./hack/kindnode/pause
      entrypoint=/pause
      sed -i "s#registry.k8s.io/pause:[0-9.]*#$name#" "$node/etc/containerd/config.toml"
      ;;
    kube-proxy)
      # It calls iptables. The libraries of its plugins are needed too: without libm a Service with two endpoints fails.
      install -m 0755 "$programs/$program" "$folder/usr/local/bin/"
      mkdir -p "$folder"/usr/{sbin,lib,lib64} "$folder/run"
      for link in lib lib64 sbin; do ln -s usr/$link "$folder/$link"; done
      cp -a "$node"/usr/sbin/{xtables-nft-multi,xtables-legacy-multi,nft,conntrack} "$folder/usr/sbin/"
      for tool in ip{,6}tables{,-save,-restore}; do ln -s xtables-nft-multi "$folder/usr/sbin/$tool"; done
      # shellcheck disable=SC2016
      chroot "$node" sh -c 'cd /usr/lib/*/xtables; ldd /usr/sbin/xtables-nft-multi /usr/sbin/xtables-legacy-multi /usr/sbin/nft /usr/sbin/conntrack *.so;
        echo "=> $PWD/"' | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p' | sort -u | while read -r file; do
        mkdir -p "$folder$(dirname "$file")"
        if [[ $file == */ ]]; then cp -a "$node$file." "$folder$file"; else cp -L "$node$file" "$folder$file"; fi
      done
      cp -L "$node"/lib64/ld-linux-*.so.* "$folder/usr/lib64/" 2>/dev/null || cp -L "$node"/lib/ld-linux-*.so.* "$folder/usr/lib/"
      ;;
    *)
      say "kubeadm requires image $name, and this script cannot build it"
      exit 1
      ;;
  esac
  archive "$name" "$folder" "$images/$program.tar" "{\"Entrypoint\":[\"$entrypoint\"],$path}"
done

step "taking them into the containerd of the node"
run=$(mktemp -d)
cat >"$run/config.toml" <<CONFIG
version = 3
root = "$node/var/lib/containerd"
state = "$run/state"
disabled_plugins = ["io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri", "io.containerd.nri.v1.nri"]
[grpc]
address = "$run/containerd.sock"
CONFIG
"$programs/containerd" --config "$run/config.toml" >"$work/containerd.log" 2>&1 &
containerd=$!
trap 'kill $containerd 2>/dev/null || true; rm -rf "$run"' EXIT
ctr() { "$programs/ctr" --address "$run/containerd.sock" --namespace k8s.io "$@"; }
for ((try = 0; try < 100; try++)); do
  if ctr version >/dev/null 2>&1; then break; fi
  sleep 0.2
done
for file in "$images"/*.tar; do
  ctr images import --label io.cri-containerd.pinned=pinned --all-platforms --no-unpack --digests "$file" >>"$work/containerd.log" 2>&1
done
kill $containerd
wait $containerd || true

step "writing the image"
OWNER=kept archive "kindest/node:$kubernetes-$key" "$node" "$out" \
  '{"Env":["container=docker","PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],"StopSignal":"SIGRTMIN+3","Entrypoint":["/usr/local/bin/entrypoint","/sbin/init"]}'
rm -rf "$node" "$images"
find "$work" -maxdepth 1 -name 'node-*.tar' ! -path "$out" -delete
step "done: $out, $(($(stat -c %s "$out") / 1048576)) MiB"
echo "$out"
