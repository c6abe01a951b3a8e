#!/bin/bash
# What the demos are made of: their rows, their manifests' arguments, and what they say at the end.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

check "dates.sh makes rows" deploy/demo/dates.sh "$work/dates"
check "... the same again" deploy/demo/dates.sh "$work/again"
check "... the same again: files" diff -r "$work/dates" "$work/again"
days() { sed 's/.*"summary": "\([^"]*\)".*/\1/' "$1" | sort; }
each_day_once() { [ "$(cat "$work"/dates/*.jsonl | days /dev/stdin | uniq | wc -l)" -eq 36525 ] && [ "$(cat "$work"/dates/*.jsonl | wc -l)" -eq 36525 ]; }
check "... one of each day of a hundred years" each_day_once
apart() { [ -z "$(comm -12 <(days "$work/dates/train.jsonl") <(days "$work/dates/validation.jsonl"))" ]; }
check "... none of those that are kept back is trained on" apart
as_date_says() { # of every hundredth row; the ordinals and the dot are not for date(1)
    local text day
    while IFS=$'\t' read -r text day; do
        text=$(sed -E 's/^the //; s/ of / /; s/([0-9])(st|nd|rd|th)/\1/; s/\.//; s/,//' <<<"$text")
        [ "$(LC_ALL=C date -d "$text" +%F)" = "$day" ] || { echo "$text is not $day"; return 1; }
    done < <(awk -F'"' 'NR % 100 == 0 { print $4 "\t" $8 }' "$work/dates/train.jsonl")
}
check "... each is the day that date(1) takes it for" as_date_says

mkdir "$work/bin"
cat >"$work/bin/shoal" <<'END'
#!/bin/sh
[ "$1 $3" = "generate --prompt" ] || exit 2
case $4 in *1950*) echo 1950-01-01 ;; *) LC_ALL=C date -d "$(echo "$4" | sed -E 's/^the //; s/ of / /; s/([0-9])(st|nd|rd|th)/\1/; s/[.,]//g')" +%F ;; esac
END
chmod +x "$work/bin/shoal"
ask() { PATH=$work/bin:$PATH deploy/demo/dates.sh ask "$work/dates" model "$1"; }
check "the answers are counted" fails 0 "10 of 10 are right." ask 10
check "... and one that is wrong is told" fails 0 "wrong: it is 1950-" ask 400
ask 400 >"$work/answers"
check "... and not counted" lacks "$work/answers" "400 of 400"

# A text with fortunes between lines of "%", as of Debian's package.
fortunes=/usr/share/games/fortunes/fortunes
check "fortunes.sh makes a tokenizer" deploy/demo/fortunes.sh "$fortunes" "$work/fortunes"
ids() { shoal tokenize --tokenizer "$work/fortunes" "$1"; }
same_again() { ids "$fortunes" >"$work/ids" && shoal tokenize --tokenizer "$work/fortunes" --decode "$work/ids" | diff - "$fortunes"; }
check "... its ids are the text" same_again
printf 'You will not be married, and do not "sulk".' >"$work/line"
check "... a word that it knows is one id" test "$(ids "$work/line" | wc -w)" -le 20
check "... another one is bytes" test "$(printf ' xylophonist' | ids /dev/stdin | wc -w)" -eq 12
cat >"$work/bin/shoal" <<'END'
#!/bin/sh
[ "$1 $3" = "generate --prompt" ] || exit 2
sed -n 1,2p "$FORTUNES"
printf '%%\nYou will meet\n  a Llama.\n%%\nA cut'
END
tell() { FORTUNES=$fortunes PATH=$work/bin:$PATH deploy/demo/fortunes.sh tell "$fortunes" model "$@"; }
check "a fortune of the text is told from a new one" fails 0 "  (from the text)" tell
check "... lines are joined" fails 0 "  You will meet a Llama." tell
check "... they are counted, and one that is cut off is not" fails 0 "1 of 2 are new" tell
check "... up to the number that was asked for" fails 0 "0 of 1 are new" tell 1

printf 'Test set: Average loss: 0.6, Accuracy: 7788/10000 (77.88%%)\n\nx\nTest set: Average loss: 0.5, Accuracy: 8188/10000 (81.88%%)\n' >"$work/log"
check "accuracy.sh draws the epochs" fails 0 "  epoch  2  ########################################..........  8188 of 10000, 81.9 %" \
    deploy/demo/accuracy.sh "$work/log"
check "... and fails without any" fails 1 "" deploy/demo/accuracy.sh /dev/null

plan() { # DEMO: what --dry_run says of its arguments
    mapfile -t arguments < <(sed -n 's/^ *- \(--[^ ]*\).*/\1/p' "deploy/demo/$1.yaml" | sed "s|build/demo/|$work/|")
    shoal-agent "${arguments[@]}" --strict --dry_run
}
check "the demo mnist" fails 0 "1199882 parameters" plan mnist
check "the demo llama" fails 0 "parameters in" plan llama
check "the demo t5" fails 0 "952192 parameters" plan t5
check "... finds its rows" fails 0 "$work/dates" plan t5
tap_done
