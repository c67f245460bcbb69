#!/bin/sh
# make demo: the main job in one minute. Deploys into a temporary home and works with the real gh, through
# the shim, against the embedded local forge: healthy, an outage, recovery. Nothing leaves this machine.
# Every step is checked; the first that is not as it should be ends the demo with exit 1.
set -eu

root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/forge.XXXXXX")
socket=$work/forge.sock
forge="node $root/tests/support/forge/main.js"

cleanup() {
    [ -z "${server-}" ] || kill "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

# --- the stage -------------------------------------------------------------------------------------

bold= plain=
if [ -t 1 ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
note() { printf '   %s\n' "$*"; }

# Output lines that are not shown again.
hidden='x^'

# The command as a person would type it, its output, and its exit code, which must be the expected one.
run() { # expected-exit command...
    expected=$1
    shift
    printf '\n$ %s\n' "$*"
    got=0
    "$@" >"$work/out" 2>&1 </dev/null || got=$?
    grep -vE "$hidden" "$work/out" | sed 's/^/  /'
    [ "$got" -eq 0 ] || note "(exit $got)"
    [ "$got" -eq "$expected" ] || { echo "demo: expected exit $expected" >&2; exit 1; }
}

# The last command's output must say this.
expect() {
    grep -qF -- "$1" "$work/out" || { echo "demo: the output above should say: $1" >&2; exit 1; }
}

quietly() { # times command...
    left=$1
    shift
    while [ "$left" -gt 0 ]; do
        "$@" >/dev/null 2>&1 </dev/null || true
        left=$((left - 1))
    done
}

ctl() { $forge ctl "$socket" "$@" >/dev/null; }

real=
for version in wheel debian; do
    if [ -x "$root/target/gh/$version/gh" ]; then real=$root/target/gh/$version; break; fi
done
[ -n "$real" ] || { echo "demo: no real gh in target/gh: run scripts/install-test-gh.sh" >&2; exit 1; }

export HOME="$work/home" BOB_HOME="$work/home/.claude" GH_CONFIG_DIR="$work/gh" GH_TOKEN=fake
export GH_NO_UPDATE_NOTIFIER=1 GH_TELEMETRY=0
unset GH_REPO GH_HOST GH_DEBUG DEBUG GITHUB_TOKEN XDG_STATE_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_CONFIG_HOME
unset BOB_FORGE_STATE BOB_FORGE_TTL BOB_FORGE_WINDOW CLAUDE_CODE_SESSION_ID
mkdir -p "$HOME" "$GH_CONFIG_DIR" "$work/widget"
printf 'http_unix_socket: %s\nprompt: disabled\n' "$socket" >"$GH_CONFIG_DIR/config.yml"

$forge serve --socket "$socket" --repo acme/widget >"$work/server" &
server=$!
until grep -q '^listening' "$work/server"; do
    kill -0 "$server" || { echo "demo: the local forge did not start" >&2; exit 1; }
    sleep 0.1
done
ctl POST seed '{"issues":[{"title":"Doors do not close"},{"title":"Lights stay on"}]}'

# --- the play --------------------------------------------------------------------------------------

say "1. Deploy into a temporary home; from now on 'gh' is the shim, and $("$real/gh" --version | head -n 1) the real one behind it"
run 0 "$root/scripts/deploy.sh" --no-build
export PATH="$BOB_HOME/bin:$real:$PATH"
cd "$work/widget"
git init -q .
git remote add origin https://github.com/acme/widget.git

say "2. Healthy: an answer is an answer, and an empty one means empty"
run 0 gh issue list
expect 'Doors do not close'
run 0 gh issue list --label nosuch
note '(nothing, exit 0: no issue has that label)'
run 0 bob forge health
expect 'forge: operational (recent-calls-succeeded)'
hidden='^(quota|rate|spent by|rate-limited answers|  [^ ]+: [0-9]+ call)'
printf "\n"; note "the lines about the quota are left out from here on"

say "3. Outage: GitHub answers 503. A call that was never made before fails as it would without the shim"
ctl POST fault '{"fault":"503","body":"html"}'
run 1 gh issue view 1
run 3 bob forge health
expect 'forge: degraded'
run 0 bob forge health observations
printf "\n"; note "a script asks before it believes an empty list:"
run 0 sh -c 'if forge-health --no-probe >/dev/null; then echo "there is none"; else echo "could not check"; fi'
expect 'could not check'
printf "\n"; note "what was read before is answered from the last known state, marked on stderr:"
run 0 gh issue list
expect 'Doors do not close'
expect '[forge-cache] served from cache'
run 0 bob forge cache

printf "\n"; note "writes are queued, and say so; a new issue has a handle that stands for its number:"
run 0 gh issue create --title 'Brakes squeak' --body 'Since this morning.'
expect 'https://github.com/acme/widget/issues/BOB-Q1'
run 0 gh issue comment BOB-Q1 --body 'On it.'
run 0 gh issue edit 2 --title 'Lights stay on at night'
expect '[forge-queue] not delivered yet'
run 3 bob forge queue
expect '3 pending'

say "4. The network goes away altogether, and nothing recent succeeded"
ctl DELETE faults
ctl POST fault '{"fault":"drop"}'
quietly 10 gh issue list
run 4 bob forge health
expect 'forge: unreachable'

say "5. JS callers read the same truth from the same engine"
run 0 node -e 'const f = require(process.env.BOB_HOME + "/scripts/forge/health.js");
  const { state, reason } = f.status();
  console.log("isTrustworthy():", f.isTrustworthy(), "-", state, "(" + reason + ")");'
expect 'isTrustworthy(): false - unreachable'

say "6. Recovery: the forge answers again, and ten calls later the verdict is clean"
ctl DELETE faults
quietly 10 gh issue list
run 0 bob forge health
expect 'forge: operational'
expect 'were answered from the cache'
printf "\n"; note "the first of those calls delivered what was queued: everything there, once, in order"
run 0 bob forge queue
expect 'nothing pending'
run 0 gh issue list
expect 'Brakes squeak'
expect 'Lights stay on at night'
run 0 gh issue view BOB-Q1 --comments
expect 'On it.'

say "Done: the verdict followed what really happened to real calls, all of it through a plain 'gh'."
