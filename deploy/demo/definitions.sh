#!/bin/bash
# Makes rows for a T5 of Debian's fortunes: each definition, and the word that it defines.
#   deploy/demo/definitions.sh FILE     FILE: JSON lines with text and summary
set -eu
awk '
    function text(s) { gsub(/\\/, "\\\\", s); gsub(/"/, "\\\"", s); gsub(/[[:cntrl:]]/, " ", s); gsub(/ +/, " ", s); sub(/^ /, "", s); return s }
    BEGIN { RS = "\n%\n" }
    match($0, /^[^\n:]*, (n|adj|v|adv|vt|vi|v\.t|v\.i|n\.pl)\.:\n/) {
        word = substr($0, 1, RLENGTH); sub(/,.*/, "", word)
        print "{\"text\": \"" text(substr($0, RLENGTH + 1)) "\", \"summary\": \"" text(word) "\"}"
    }' /usr/share/games/fortunes/definitions >"$1"
