# shellcheck shell=bash disable=SC2154
# What mutations.sh of tests/operator/histories, tests/sieve and tests/acto share, which break the operator: builds a program
# with one line broken on purpose, looks whether it is found, and prints a row of docs/operator-proofs.md. Who sources it has a table and two functions:
#   mutations   lines "what is broken | file | sed | where"; tests/check_mutations.sh finds an edit that changes nothing
#   look        WHERE: runs the program, leaves what it said in the file $log, and prints what found it; fails: nothing did
#   place       WHERE: prints the columns that name where, each with its "| "

# Leaves with 2 unless T, which may be empty, is in the words of a row. Before anything else is started.
check_choice() {
    [[ -z ${T:-} ]] || cut -d'|' -f1 <<<"$mutations" | grep -qF -- "$T" || {
        echo "no mutation has \"$T\" in its words. There are:" >&2
        sed -n 's/^\([^|]\{1,\}\)|.*/  \1/p' <<<"$mutations" >&2
        exit 2
    }
}

# mutant PROGRAM FILE SED COMPILE LINK OBJECTS-AND-LIBRARIES...: makes PROGRAM of FILE as sed(1) changes it; else fails and
# prints why.
mutant() {
    local program=$1 file=$2 edit=$3 compile=$4 link=$5 folder
    shift 5
    folder=${program%/*}
    sed "$edit" "$file" >"$folder/mutant.c"
    if cmp -s "$file" "$folder/mutant.c"; then
        echo "NOT APPLIED"
        return 1
    fi
    # shellcheck disable=SC2086 # they are words
    if ! $compile -Wno-error -c -o "$folder/mutant.o" "$folder/mutant.c" 2>"$log" || ! $link -o "$program" "$folder/mutant.o" "$@" 2>>"$log"; then
        echo "DOES NOT BUILD: $(tail -n 1 "$log")"
        return 1
    fi
}

# break_each PROGRAM COMPILE LINK OBJECTS-AND-LIBRARIES...: for each row whose words have T. Exit code 1 if one is not found.
break_each() {
    local program=$1 what file edit where found missed=0
    shift
    log=${program%/*}/log
    mkdir -p "${program%/*}"
    while IFS='|' read -r what file edit where; do
        [[ -n $what && $what == *"${T:-}"* ]] || continue
        if ! found=$(mutant "$program" "$file" "$edit" "$@") || ! found=$(look "$where"); then
            missed=1
            found=${found:-NOT FOUND: $(tail -n 1 "$log")}
        fi
        echo "| $what | \`$file\` | $(place "$where")$found |"
    done <<<"$mutations"
    return "$missed"
}
