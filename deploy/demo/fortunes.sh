#!/bin/bash
# Gives a Llama words to write with, and shows what it writes. A tokenizer of whole words is made from the text; bytes are for the rest.
#   deploy/demo/fortunes.sh TEXT FOLDER             FOLDER/tokenizer.json: a token for each word and mark of TEXT
#   deploy/demo/fortunes.sh tell TEXT MODEL [N]     N fortunes that the model writes (12), and which of them stand in TEXT
set -eu
here=$(dirname "$0")

# deploy/demo/bytes, whose pieces are single bytes, with words behind them. They are cut as GPT-2's expression cuts them.
make_tokenizer() { # TEXT FOLDER
    mkdir -p "$2"
    LC_ALL=C awk '
        function add(piece) {
            if (length(piece) < 2 || piece in seen || piece ~ /[^ -~\t\n]/) return
            seen[piece]
            gsub(/[\\"]/, "\\\\&", piece)
            gsub(/ /, "\\u0120", piece); gsub(/\n/, "\\u010a", piece); gsub(/\t/, "\\u0109", piece)
            words = words sprintf(",\n\"%s\":%d", piece, 256 + ++count)
        }
        FNR == NR { text = text $0 "\n"; next }
        FNR == 1 {
            while (match(text, /^(\47(s|t|re|ve|m|ll|d)| ?[A-Za-z]+| ?[0-9]+| ?[^ \t\nA-Za-z0-9]+|[ \t\n]+)/)) {
                n = RLENGTH
                if (substr(text, 1, n) ~ /^[ \t\n]+$/ && n > 1 && n < length(text)) n-- # the last one begins the next word
                add(substr(text, 1, n))
                text = substr(text, n + 1)
            }
        }
        /"use_regex":false/ { sub(/false/, "true") }
        /"byte_fallback":/ { print "\"ignore_merges\":true," }
        /^"\\u00ff":255$/ { $0 = $0 words }
        { print }' "$1" "$here/bytes/tokenizer.json" >"$2/tokenizer.json"
    cp "$here/bytes/tokenizer_config.json" "$2"
}

tell() { # TEXT MODEL N
    # fortunes stand between lines of "%"; the last one may be cut off
    shoal generate "$2" --prompt $'%\n' --temperature 0.7 --max_tokens $((25 * $3)) | awk -v n="$3" '
        function flush() {
            if (told != "" && shown < n) {
                is_old = told in known
                printf "  %s%s\n", told, is_old ? "  (from the text)" : ""
                shown++; old += is_old
            }
            told = ""
        }
        { line = $0; gsub(/[ \t]+/, " ", line); sub(/^ /, "", line); sub(/ $/, "", line) }
        FNR == NR && line == "%" { known[entry]; entry = ""; next }
        FNR == NR { entry = entry (entry == "" ? "" : " ") line; next }
        FNR == 1 { print "Fortunes that it writes:" }
        line == "%" { flush(); next }
        line != "" { told = told (told == "" ? "" : " ") line }
        END {
            if (!shown) exit 1
            printf "%d of %d are new: they do not stand in the text that it learned from.\n", shown - old, shown
        }' "$1" -
}

case ${1-} in
tell) tell "$2" "$3" "${4:-12}" ;;
'') sed -n '2,4s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
*) make_tokenizer "$1" "$2" ;;
esac
