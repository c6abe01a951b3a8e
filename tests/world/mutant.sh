# shellcheck shell=bash
# For tests/sieve/mutations.sh and tests/acto/mutations.sh: builds the operator with one line broken on purpose.

# mutant FOLDER FILE SED COMPILE LINK OBJECTS-AND-LIBRARIES...: makes FOLDER/shoal-operator of FILE as sed(1) changes it; else fails and
# prints why.
mutant() {
    local folder=$1 file=$2 edit=$3 compile=$4 link=$5
    shift 5
    mkdir -p "$folder"
    sed "$edit" "$file" >"$folder/mutant.c"
    if cmp -s "$file" "$folder/mutant.c"; then
        echo "NOT APPLIED"
        return 1
    fi
    # shellcheck disable=SC2086 # they are words
    if ! $compile -Wno-error -c -o "$folder/mutant.o" "$folder/mutant.c" 2>"$folder/log" || ! $link -o "$folder/shoal-operator" "$folder/mutant.o" "$@" 2>>"$folder/log"; then
        echo "DOES NOT BUILD: $(tail -n 1 "$folder/log")"
        return 1
    fi
}
