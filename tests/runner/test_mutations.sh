#!/bin/bash
# shellcheck disable=SC2016 # for other shells
# What tests/operator/histories/mutations.sh takes for a mutant that was found: histories that say what is wrong, not a crash.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

# In the place of the compiler and the linker: the mutant is a shell script.
printf '%s\n' '#!/bin/bash' '{ echo "#!/bin/bash"; echo "$MUTANT"; } >"$2" && chmod +x "$2"' >"$work/link"
chmod +x "$work/link"
mutate() { T="a limit is reached one" MUTANT=$1 tests/operator/histories/mutations.sh true "$work/link" small random >"$work/row"; }
finds() { mutate "$2" && contains "$work/row" "| $1 |"; }
misses() { fails 1 "" mutate "$2" && contains "$work/row" "| NOT FOUND$1"; }

check "a told history is one" finds "two attempts at once" 'echo "seed 1 (SIMULATION_SEED=1 runs it alone): two attempts at once"; exit 1'
check "... also of a program that is aborted" finds "2 failures" 'echo "seed 1 (SIMULATION_SEED=1 runs it alone): 2 failures"; kill -ABRT $$'
check "an assertion is one" finds '"GET" != "DELETE"' 'echo "[  ERROR   ] --- \"GET\" != \"DELETE\""; echo "[   LINE   ] --- x.c:7: error: Failure!"; exit 1'
check "... of C, too" finds "x: x.c:7: f: Assertion \`at' failed." 'echo "x: x.c:7: f: Assertion \`at'\'' failed."; kill -ABRT $$'
check "no end is none" misses " |" 'echo fine'
check "a crash is none" misses ": exit code 1: [  ERROR   ] --- Test failed with exception: Segmentation fault(11)" \
    'echo "[  ERROR   ] --- Test failed with exception: Segmentation fault(11)"; exit 1'
check "a signal is none" misses ": exit code 139" 'kill -SEGV $$'
check "a program that does not start is none" misses ": exit code 127" 'nosuch'

check "words that no mutation has are told, with those that there are" fails 2 "a counted failure waits" \
    env T=nonsense tests/operator/histories/mutations.sh true true small random
check "... by the sieve's, too" fails 2 'no mutation has "nonsense" in its words' env T=nonsense tests/sieve/mutations.sh true true main.o
check "... and by acto's" fails 2 'no mutation has "nonsense" in its words' env T=nonsense tests/acto/mutations.sh true true main.o

# What tests/lint.sh calls: ROWS are a table of mutations, of a source that has one line.
applies() { # ROWS
    printf '%s\n' "int limit = 3;" >"$work/limit.c"
    printf '%s\n' "mutations='" "$@" "'" "echo '|no|row|'" >"$work/mutations.sh"
    tests/check_mutations.sh "$work/mutations.sh" >"$work/told"
}
stale() { # TOLD ROWS
    fails 1 "" applies "${@:2}" && contains "$work/told" "$work/mutations.sh: $1"
}
check "edits that change their source are well" applies "a limit|$work/limit.c|s/3/4/" "two|$work/limit.c|s/3/4/;s/limit/most/|random"
check "one that changes nothing is told" stale "a limit: changes nothing in $work/limit.c: s/5/4/" "two|$work/limit.c|s/3/4/" "a limit|$work/limit.c|s/5/4/"
check "... of several commands each" stale "two: changes nothing in $work/limit.c: s/most/least/" "two|$work/limit.c|s/3/4/;s/most/least/"
check "one of no file is told" stale "gone: there is no $work/gone.c" "gone|$work/gone.c|s/3/4/"
check "one that sed does not read is told" stale "half: sed: " "half|$work/limit.c|s/3/4"
check "a script without a table is told" stale "has no table of mutations"
tap_done
