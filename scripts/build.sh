#!/bin/sh
# Builds what is shipped into target/deploy: the gh shim, the forge command and the Node addon.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
target=${CARGO_TARGET_DIR:-target}
case $target in /*) ;; *) target=$root/$target ;; esac
# One place, wherever cargo builds: deploy, the tests and the JS modules look here.
out=$root/target/deploy
mkdir -p "$out"

[ -f "$out/forge.node" ] || echo "building the gh shim, the forge command and the addon: the first time takes minutes" >&2

# By rename: a program that is running, and an addon that a Node process has loaded, stay whole.
put() {
    cp "$1" "$out/.$2.$$"
    mv -f "$out/.$2.$$" "$out/$2"
}

# A static shim starts in about two thirds of the time of a dynamic one. macOS has no static programs.
if [ "$(uname -s)" = Linux ]; then
    cargo rustc -q --release -p forge --bin gh -- -C target-feature=+crt-static -C relocation-model=static
else
    # Its programs have no notes either: there the marker is a search path that leads nowhere, which stands
    # in the program's header.
    cargo rustc -q --release -p forge --bin gh -- -C link-arg=-Wl,-rpath,bob-forge-gh-shim
fi
put "$target/release/gh" gh
cargo build -q --release -p forge --bin forge
put "$target/release/forge" forge
cargo build -q --release -p forge-bindings
case $(uname -s) in Darwin) library=dylib ;; *) library=so ;; esac
put "$target/release/libforge_bindings.$library" forge.node

head -c 4096 "$out/gh" | grep -aq bob-forge-gh-shim || {
    echo "build: the shim does not carry its marker in its first 4 KiB: two copies on PATH would not know each other" >&2
    exit 1
}
