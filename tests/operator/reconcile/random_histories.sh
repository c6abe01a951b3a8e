#!/bin/bash
# random_histories.sh PROGRAM HISTORIES FROM PROCESSES: random histories with the seeds from FROM on, for a night (make prove-random calls it).
# Each process takes the next part as soon as it is done with one. A part that fails prints its history, and the others go on.
# Ended early, it has said which seeds are done. Exit code 1: a part has failed; 2: an argument is wrong.
set -u
unset SIMULATION_SEED # which would be tried alone
part=${PART:-1000000} # histories that one process tries in one go: some minutes
export CMOCKA_MESSAGE_OUTPUT=STDOUT

whole() { # NAME VALUE: ends unless that is a whole number from 1 on which bash can count with
    [[ $2 =~ ^[1-9][0-9]{0,17}$ ]] && return
    echo "random_histories.sh: $1 must be a whole number from 1 on, of 18 digits at most, not '$2'" >&2
    exit 2
}
try() { # PROGRAM HISTORIES FROM
    local said
    if said=$("$1" "$2" "$3" 2>&1); then
        grep 'random histories' <<<"$said"
    else
        printf '%s\n' "FAILED among the seeds from $3 on:" "$said"
        return 1
    fi
}
export -f try

[ $# -eq 4 ] || { echo "usage: ${0##*/} PROGRAM HISTORIES FROM PROCESSES" >&2 && exit 2; }
whole HISTORIES "$2"
whole FROM "$3"
whole PROCESSES "$4"
whole PART "$part"
# shellcheck disable=SC2016 # of the inner shell
try_each() { PROGRAM=$1 xargs -P "$2" -n 2 bash -c 'try "$PROGRAM" "$0" "$1"'; }
last=$(($3 + $2 - 1))
for ((from = $3; from <= last; from += part)); do
    echo "$((last - from + 1 < part ? last - from + 1 : part)) $from"
done | try_each "$1" "$4" || {
    echo "random_histories.sh: a history has broken an invariant" >&2
    exit 1
}
