#!/bin/sh
# Runs the groom headless, and always ends with a trailer.
#
#   groom.sh [ARGUMENTS FOR CLAUDE]...
#
# The model ends its run with one line `GROOM-RESULT: …`. A run that ends without it and speaks of a rate limit is run
# once more, when the quota has been reset: at the reset on file and five seconds, after a minute when none is on file,
# never after more than BOB_GROOM_RETRY_MAX_WAIT seconds (3900). When there is no such line in the end, this prints
#
#   GROOM-RESULT: result=null incomplete=1 reason=<rate-limit|no-result-line|timeout|claude-failed>
#
# and exits with claude's code, or 3. BOB_GROOM_TIMEOUT is the longest a run may take, in seconds (7200);
# BOB_GROOM_CLAUDE the program (claude). BOB_FORGE_SLEEP is run in place of sleeping.
set -u

claude=${BOB_GROOM_CLAUDE:-claude}
limit=${BOB_GROOM_TIMEOUT:-7200}
max_wait=${BOB_GROOM_RETRY_MAX_WAIT:-3900}
state=${BOB_FORGE_STATE:-${BOB_HOME:-$HOME/.claude}/forge}
BOB_FORGE_CALLER=groom
export BOB_FORGE_CALLER

prompt='/groom

A slow gh call, or a line that begins with [forge-budget], is a wait: let it finish. Run a rate-limited command again.
Never stop, skip an item or end the session over a rate limit or a reset time read in some output.
End with one line: GROOM-RESULT: followed by what was done.'

work=$(mktemp -d "${TMPDIR:-/tmp}/groom.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'interrupted 130 INT' INT
trap 'interrupted 143 TERM' TERM
trap 'interrupted 129 HUP' HUP

# One run: its output as it comes and in $work/out, its exit code in $code, 124 for one that took too long. In the
# background, so that a signal to this script is heard while it waits.
attempt() {
    { guarded "$@" 2>&1; echo $? >"$work/code"; } | tee "$work/out" &
    run=$!
    wait "$run"
    code=$(cat "$work/code")
}

guarded() {
    "$claude" -p "$prompt" "$@" </dev/null &
    child=$!
    echo "$child" >"$work/child"
    rm -f "$work/late"
    # Its output goes nowhere: a pipe that it kept open would outlive the run.
    (
        trap 'kill "$nap" 2>/dev/null; exit 0' TERM
        sleep "$limit" &
        nap=$!
        wait "$nap" && : >"$work/late" && kill -TERM "$child" && sleep 10 && kill -KILL "$child"
    ) >/dev/null 2>&1 &
    guard=$!
    wait "$child"
    ended=$?
    kill "$guard" 2>/dev/null
    wait "$guard" 2>/dev/null
    if [ -e "$work/late" ]; then return 124; else return "$ended"; fi
}

# A signal ends the model too, and the run still has its trailer.
interrupted() { # code signal
    trap '' INT TERM HUP
    if [ -s "$work/child" ]; then kill -"$2" "$(cat "$work/child")" 2>/dev/null; fi
    [ -z "${run-}" ] || wait "$run"
    has_result || trailer claude-failed
    exit "$1"
}

trailer() {
    echo "GROOM-RESULT: result=null incomplete=1 reason=$1"
}

has_result() { grep -q '^GROOM-RESULT:' "$work/out" 2>/dev/null; }
speaks_of_a_limit() { grep -qiE 'rate[ -]?limit|HTTP 429|abuse detection' "$work/out"; }

# Seconds until the quota that ran out is reset (without one that did, GraphQL's), and five more.
until_reset() {
    [ -r "$state/budget.env" ] || return 1
    awk -F= -v now="$(date +%s)" '
        { value[$1] = $2 }
        END {
            floor["graphql"] = 300; floor["core"] = 200; floor["search"] = 3
            for (quota in floor) {
                reset = value[quota "_reset"] + 0
                low = (quota "_remaining" in value) && value[quota "_remaining"] + 0 < floor[quota]
                if (low && reset > at) at = reset
            }
            if (at <= now) at = value["graphql_reset"] + 0
            if (at <= now) exit 1
            print at - now + 5
        }' "$state/budget.env"
}

attempt "$@"
if ! has_result && speaks_of_a_limit && [ "$code" -ne 124 ]; then
    wait_s=$(until_reset) || wait_s=60
    [ "$wait_s" -le "$max_wait" ] || wait_s=$max_wait
    echo "groom: the run ended over a rate limit; running it once more in ${wait_s}s" >&2
    "${BOB_FORGE_SLEEP:-sleep}" "$wait_s"
    attempt "$@"
fi

if has_result; then
    exit "$code"
fi
if [ "$code" -eq 124 ]; then reason=timeout
elif speaks_of_a_limit; then reason=rate-limit
elif [ "$code" -ne 0 ]; then reason=claude-failed
else reason=no-result-line
fi
trailer "$reason"
[ "$code" -ne 0 ] || code=3
exit "$code"
