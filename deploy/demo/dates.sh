#!/bin/bash
# Makes rows for a T5: a day as people write it, and as ISO 8601 does. One day in ten is kept back, and is in no row of the training,
# however it is written.
#   deploy/demo/dates.sh FOLDER                 FOLDER/train.jsonl and FOLDER/validation.jsonl, always the same
#   deploy/demo/dates.sh ask FOLDER MODEL [N]   what the model answers to N of the days that were kept back (10), and how many are right
set -eu

make_rows() {
    mkdir -p "$1"
    awk -v folder="$1" '
        function ending(d) { return d % 10 == 1 && d != 11 ? "st" : d % 10 == 2 && d != 12 ? "nd" : d % 10 == 3 && d != 13 ? "rd" : "th" }
        function written(way, d, month, y) {
            if (way == 0) return d " " month " " y
            if (way == 1) return month " " d ", " y
            if (way == 2) return "the " d ending(d) " of " month ", " y
            if (way == 3) return substr(month, 1, 3) ". " d ", " y
            return d "-" toupper(substr(month, 1, 3)) "-" y
        }
        function random(n) { # the same numbers from every awk
            seed = (seed * 16807) % 2147483647
            return seed % n
        }
        BEGIN {
            seed = 1
            split("January February March April May June July August September October November December", months)
            split("31 29 31 30 31 30 31 31 30 31 30 31", days)
            for (y = 1950; y < 2050; y++)
                for (m = 1; m <= 12; m++)
                    for (d = 1; d <= days[m]; d++) {
                        if (m == 2 && d == 29 && y % 4) continue
                        file = folder "/" (random(10) == 0 ? "validation" : "train") ".jsonl"
                        printf "{\"text\": \"%s\", \"summary\": \"%04d-%02d-%02d\"}\n", written(random(5), d, months[m], y), y, m, d > file
                    }
        }'
}

ask() { # FOLDER MODEL N
    local asked=0 right=0 text day answer mark
    echo "Days that it has not seen:"
    # every so many rows, so that they are of all years
    while IFS=$'\t' read -r text day; do
        answer=$(shoal generate "$2" --prompt "$text" --temperature 0 --max_tokens 12)
        asked=$((asked + 1)) mark="wrong: it is $day"
        [ "$answer" != "$day" ] || { mark=right && right=$((right + 1)); }
        printf '  %-30s -> %-10s  %s\n' "$text" "$answer" "$mark"
    done < <(awk -F'"' -v n="$3" '{ rows[NR] = $4 "\t" $8 } END { for (i = 0; i < n; i++) print rows[1 + int((i + 0.5) * NR / n)] }' "$1/validation.jsonl")
    echo "$right of $asked are right."
}

case ${1-} in
ask) ask "$2" "$3" "${4:-10}" ;;
'') sed -n '2,6s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
*) make_rows "$1" ;;
esac
