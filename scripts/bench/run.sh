#!/bin/sh
# make bench: ratios measured side by side in one run. Wants a C compiler.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
cd "$root"
work=$root/target/bench
mkdir -p "$work"
# Static, like the shim: a dynamic start costs more and would flatter it. macOS links no other way.
static=-static
[ "$(uname -s)" = Darwin ] && static=
for name in spawn child; do
    ${CC:-cc} -O2 $static -o "$work/$name" "scripts/bench/$name.c"
done
status=0
BENCH_SHIM=$root/target/deploy/gh BENCH_C=$work/spawn BENCH_CHILD=$work/child \
    cargo bench -q -p forge --bench process || status=1
node scripts/bench/js.js || status=1
exit $status
