#!/bin/sh
# Installs Forge Health into $BOB_HOME (default ~/.claude), or takes it out again.
#
#   scripts/deploy.sh [--dry-run] [--uninstall] [--no-build]
#
# Builds what is missing first. Files are replaced by rename, so a gh in use never breaks; a second run
# changes nothing. An older Forge Health's files give way (a copy goes to forge/replaced); a file that
# is not Forge Health's is never touched.
set -eu

root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
built=$root/target/deploy
home=${BOB_HOME:-${HOME:?deploy: neither BOB_HOME nor HOME is set}/.claude}
manifest=$home/scripts/forge/.installed
replaced=$home/forge/replaced
dry= uninstall= build=yes width=10

usage() {
    echo "usage: scripts/deploy.sh [--dry-run] [--uninstall] [--no-build]"
    echo "  installs Forge Health into \$BOB_HOME (default ~/.claude)"
    echo "  --dry-run    only say what would be done"
    echo "  --uninstall  take out what was installed; the records in \$BOB_HOME/forge stay"
    echo "  --no-build   install what is in target/deploy as it is"
}
for word; do
    case $word in
        --dry-run) dry=yes width=18 ;;
        --uninstall) uninstall=yes ;;
        --no-build) build= ;;
        -h | --help) usage; exit 0 ;;
        *) echo "deploy: unknown option $word" >&2; usage >&2; exit 2 ;;
    esac
done

fail() {
    echo "deploy: $*" >&2
    exit 1
}

# What is installed: kind, source, place below $BOB_HOME.
#   own   ours by its name; a file found there is an older version of it
#   shim  replaced only when what is there is a shim too
#   link  a link to the source, which is relative to the place
#   new   only where nothing is
table() {
    row shim "$built/gh" bin/gh
    row own "$built/forge" scripts/cli/forge
    for name in $commands; do
        row link forge "scripts/cli/forge-$name"
    done
    for name in health queue; do
        case " $commands " in *" $name "*) row link ../scripts/cli/forge "bin/forge-$name" ;; esac
    done
    row new "$root/scripts/cli/bob" bin/bob
    row own "$built/forge.node" scripts/forge/forge.node
    for file in "$root"/scripts/forge/*.js; do
        row own "$file" "scripts/forge/${file##*/}"
    done
    # Beside a module its types, all of them in one file, which the checkout has at its top.
    for file in "$root"/scripts/forge/*.d.ts; do
        case $file in */types.d.ts) file=$root/index.d.ts name=types.d.ts ;; *) name=${file##*/} ;; esac
        row own "$file" "scripts/forge/$name"
    done
    for file in $callers; do
        row new "$root/scripts/$file" "scripts/$file"
    done
}
row() {
    printf '%s\t%s\t%s\n' "$1" "$2" "$3"
}
tab=$(printf '\t')
commands="health cache queue budget"

# Scripts that read through the modules: references, installed only where no other is.
callers="warp-drive/flightplan.js warp-drive/forge-mode.js todo/todo-consume.js brief/collect.js groom/groom.sh audit.js"

# The place's content in one word, as the manifest remembers it.
print_of() {
    if [ -L "$1" ]; then
        echo "link:$(readlink "$1")"
    else
        cksum <"$1" | tr ' ' ':'
    fi
}

# Installed by an earlier run, and nobody has changed it since.
remembered() {
    [ -f "$manifest" ] && grep -qxF "$(print_of "$home/$1") $1" "$manifest"
}

# The first one counts, and it is there whole or not at all, whoever else does the same.
keep() { # below
    [ -e "$replaced/$1" ] || [ -L "$replaced/$1" ] || {
        mkdir -p "$(dirname "$replaced/$1")"
        cp -P "$home/$1" "$replaced/$1.$$"
        ln -P "$replaced/$1.$$" "$replaced/$1" 2>/dev/null || true
        rm -f "$replaced/$1.$$"
    }
}

same() { # kind source place
    if [ "$1" = link ]; then
        [ "$(readlink "$3" 2>/dev/null)" = "$2" ]
    else
        [ ! -L "$3" ] && cmp -s "$2" "$3"
    fi
}

# What will happen to one row; "refuse" stops everything before anything is touched.
judge() { # kind source below
    place=$home/$3
    if [ ! -e "$place" ] && [ ! -L "$place" ]; then echo install
    elif same "$1" "$2" "$place"; then echo unchanged
    elif [ -d "$place" ]; then echo refuse
    elif remembered "$3"; then echo update
    elif [ "$1" = new ]; then echo leave
    elif [ "$1" = shim ] && ! head -c 4096 "$place" 2>/dev/null | grep -aq bob-forge-gh-shim; then echo refuse
    else echo replace
    fi
}

put() { # kind source place
    mkdir -p "$(dirname "$3")"
    aside=$(dirname "$3")/.$(basename "$3").$$
    if [ "$1" = link ]; then
        ln -s "$2" "$aside"
    else
        cp "$2" "$aside"
        chmod "$(mode_of "$2")" "$aside"
    fi
    mv -f "$aside" "$3"
}

mode_of() {
    if [ -x "$1" ] && [ "${1##*.}" != node ]; then echo 755; else echo 644; fi
}

install_all() {
    plan=$(table | while IFS=$tab read -r kind source below; do
        [ "$kind" = link ] || [ -f "$source" ] || fail "$source is missing: run without --no-build"
        verdict=$(judge "$kind" "$source" "$below")
        [ "$verdict" = refuse ] && fail "$home/$below is not Forge Health's: move it away first, nothing was changed"
        row "$verdict$tab$kind" "$source" "$below"
    done) || exit 1
    [ -n "$dry" ] || { mkdir -p "$(dirname "$manifest")" && : >"$manifest.$$"; }
    printf '%s\n' "$plan" | while IFS=$tab read -r verdict kind source below; do
        case $verdict in
            leave) say left "$below (another's, still in charge)"; continue ;;
            unchanged) say unchanged "$below" ;;
            install) say "${dry:+would be }installed" "$below" ;;
            update) say "${dry:+would be }updated" "$below" ;;
            replace) say "${dry:+would be }replaced" "$below (the older one is in forge/replaced)" ;;
        esac
        [ -n "$dry" ] && continue
        [ "$verdict" != replace ] || keep "$below"
        [ "$verdict" = unchanged ] || put "$kind" "$source" "$home/$below"
        echo "$(print_of "$home/$below") $below" >>"$manifest.$$"
    done
    [ -n "$dry" ] || remember
    advise
}

# What an earlier version installed and this one no longer has goes, unless somebody changed it.
remember() {
    if [ -f "$manifest" ]; then
        while read -r print below; do
            grep -q " $below\$" "$manifest.$$" || take_out "$print" "$below"
        done <"$manifest"
    fi
    if cmp -s "$manifest.$$" "$manifest"; then rm -f "$manifest.$$"; else mv -f "$manifest.$$" "$manifest"; fi
}

take_out() { # print below
    place=$home/$2
    if [ ! -e "$place" ] && [ ! -L "$place" ]; then
        say gone "$2"
    elif [ "$(print_of "$place")" != "$1" ]; then
        say left "$2 (changed since it was installed)"
    else
        say "${dry:+would be }removed" "$2"
        [ -n "$dry" ] && return
        rm -f "$place"
        if [ -e "$replaced/$2" ] || [ -L "$replaced/$2" ]; then
            mv -f "$replaced/$2" "$place"
            say restored "$2 (the one from before)"
        fi
    fi
}

uninstall_all() {
    [ -f "$manifest" ] || { echo "deploy: Forge Health is not installed in $home"; return; }
    while read -r print below; do
        take_out "$print" "$below"
    done <"$manifest"
    [ -n "$dry" ] && return
    rm -f "$manifest"
    find "$replaced" -type d -empty -delete 2>/dev/null || true
    for folder in scripts/forge scripts/cli scripts/warp-drive scripts/todo scripts/brief scripts/groom scripts bin; do
        rmdir "$home/$folder" 2>/dev/null || true
    done
    echo "deploy: the records in $home/forge stay, and with them the key that queued writes are delivered with: empty the queues (bob forge queue) before you remove the folder by hand"
}

say() {
    printf "%-${width}s %s\n" "$1" "$2"
}

advise() {
    case ":$PATH:" in
        *":$home/bin:"*) ;;
        *) echo "deploy: put $home/bin first on PATH: until then gh is not the shim" ;;
    esac
}

if [ -n "$dry" ]; then echo "dry run: nothing is changed in $home"; else echo "in $home"; fi
if [ -n "$uninstall" ]; then
    uninstall_all
else
    [ -z "$build" ] || "$root/scripts/build.sh"
    install_all
fi
