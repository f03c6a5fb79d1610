#!/usr/bin/env bash
# Packs the .deb, installs it with its dependencies into a new, minimal system (debootstrap and chroot) and runs
# `rubato reproduce spaan2026` there: the same output as outside. Needs root and a mirror; skipped (77) without.
# Usage: fresh_root.sh BUILD_DIR
set -euo pipefail
build=$(realpath "$1")
source=$(realpath "$(dirname "$0")/../../..")
skip() { echo "skipped: $1"; exit 77; }

[ "$(id -u)" -eq 0 ] || skip "needs root"
for tool in debootstrap dpkg-deb dpkg-shlibdeps; do command -v "$tool" > /dev/null || skip "$tool is not installed"; done
. /etc/os-release
[ "$ID" = debian ] || [ "$ID" = ubuntu ] || skip "neither Debian nor Ubuntu"
mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $VERSION_CODENAME" | sort -u | head -1)
[ -n "$mirror" ] || skip "apt knows no mirror of $VERSION_CODENAME"

work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
root=$work/root
{ mknod "$work/null" c 1 3 && echo > "$work/null" && chroot / true; } 2> /dev/null || skip "may not make devices or change the root"
timeout 60 /usr/lib/apt/apt-helper download-file "${mirror}dists/$VERSION_CODENAME/InRelease" "$work/InRelease" > /dev/null 2>&1 ||
  skip "$mirror cannot be reached"

echo "== package"
cpack --config "$build/CPackConfig.cmake" -G DEB -B "$work/packed" > "$work/cpack.log" 2>&1 || { cat "$work/cpack.log"; exit 1; }
package=$(ls "$work"/packed/*.deb)
dpkg-deb --info "$package"
dpkg-deb --field "$package" Depends | grep -q libtbb || { echo "error: Depends lacks libtbb"; exit 1; }

echo "== new root"
debootstrap --variant=minbase "$VERSION_CODENAME" "$root" "$mirror" > "$work/debootstrap.log" 2>&1 || { tail "$work/debootstrap.log"; exit 1; }
cp /etc/resolv.conf "$root/etc/"
proxy=$(apt-config dump Acquire::http::Proxy)
[ -z "$proxy" ] || echo "$proxy" > "$root/etc/apt/apt.conf.d/proxy"
cp "$package" "$root/tmp/"
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/root DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }

echo "== install"
step=$(tac "$source/Containerfile" | sed '/^FROM/q' | sed -n 's/^RUN //p')  # of the last stage
[ -n "$step" ] || { echo "error: the Containerfile installs nothing"; exit 1; }
inside sh -ec "$step" > "$work/install.log" 2>&1 || { cat "$work/install.log"; exit 1; }
inside sh -c "! ls /tmp/*.deb /var/lib/apt/lists/*" > /dev/null 2>&1 || { echo "error: the image keeps what it has installed from"; exit 1; }
inside rubato --version
inside dpkg -s rubato | grep -q '^Status: install ok installed'
for file in bin/rubato share/man/man1/rubato-explore.1.gz share/bash-completion/completions/rubato \
    share/zsh/vendor-completions/_rubato share/doc/rubato/copyright share/doc/rubato/docs/examples/a100-sweep.csv; do
  [ -s "$root/usr/$file" ] || { echo "error: /usr/$file is missing"; exit 1; }
done

echo "== run"
inside rubato reproduce spaan2026 > "$work/inside.txt"
"$build/rubato" reproduce spaan2026 > "$work/outside.txt"
cmp "$work/inside.txt" "$work/outside.txt"
cat "$work/inside.txt" | tail -12
inside sh -c 'cd /usr/share/doc/rubato && rubato replay docs/examples/run.pt.trace.json.gz --power docs/examples/run.power.csv' | grep 'within'

echo "== python"
inside sh -c 'rubato doctor; [ $? = 1 ]' | grep -q 'NVML is not there'
inside sh -c 'cd / && rubato explore gpt3-xl --gpu a100-sxm4-80gb --per pass --slack 5 --db /tmp/r.db > /dev/null &&
  rubato export --plan latest --db /tmp/r.db -o /tmp/plan.json && python3 -c "import rubato; print(rubato.load_plan(\"/tmp/plan.json\").chosen.granularity)"' | grep -x pass
inside /usr/share/rubato/capture/capture --help | grep -q sweep
ls -d "$root"/usr/lib/python3/dist-packages/rubato/__pycache__ > /dev/null  # as root leaves it, and as it has to go again

echo "== remove"
inside dpkg -r rubato > /dev/null
for path in bin/rubato share/doc/rubato share/rubato lib/python3/dist-packages/rubato; do
  [ ! -e "$root/usr/$path" ] || { echo "error: /usr/$path is left"; exit 1; }
done
echo "passed"
