#!/bin/bash
# Each edit of a mutations.sh, which breaks the product on purpose, still changes the source that it names: what changes nothing
# breaks nothing, and is found only when somebody runs them all. An edit of several commands is taken apart before each ";s/".
# A line per violation; exit code 1 if there is any.
#   tests/check_mutations.sh [SCRIPT...]
set -u
cd "$(dirname "$0")/.." || exit
bad=0
work=$(mktemp -d) || exit
trap 'rm -rf "$work"' EXIT
complain() { # TEXT
    echo "$1"
    bad=1
}

rows() { sed -n "/^mutations='\$/,/^'\$/{//d;p}" "$1"; } # SCRIPT

check_row() { # SCRIPT WHAT FILE EDIT
    local row="$1: $2" file=$3 edit=$4 command
    [ -f "$file" ] || { complain "$row: there is no $file"; return; }
    cp "$file" "$work/now"
    while IFS= read -r command; do
        sed "$command" "$work/now" >"$work/next" 2>"$work/error" || { complain "$row: $(cat "$work/error")"; return; }
        ! cmp -s "$work/now" "$work/next" || { complain "$row: changes nothing in $file: $command"; return; }
        mv "$work/next" "$work/now"
    done < <(printf '%s\n' "${edit//;s\//$'\n's\/}")
}

check_script() { # SCRIPT
    local what file edit rest count=0
    while IFS='|' read -r what file edit rest; do
        [ -n "$what" ] || continue
        check_row "$1" "$what" "$file" "$edit"
        count=$((count + 1))
    done < <(rows "$1")
    [ "$count" -gt 0 ] || complain "$1: has no table of mutations, as in tests/sieve/mutations.sh"
}

if [ $# -eq 0 ]; then
    readarray -t scripts < <(git ls-files --cached --others --exclude-standard -- 'tests/*/mutations.sh' |
        while read -r f; do [ -e "$f" ] && echo "$f"; done)
    set -- "${scripts[@]}"
fi
for script in "$@"; do
    check_script "$script"
done
exit "$bad"
