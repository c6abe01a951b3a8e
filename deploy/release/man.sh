#!/bin/sh
# Man pages out of what the programs say of themselves.
#   man.sh PROGRAM SUMMARY VERSION [COMMAND...]    prints PROGRAM(1): its --help, then that of each COMMAND
set -eu
program=$1 summary=$2 version=$3
shift 3
name=$(basename "$program")

# Reads a --help: "Usage: ..." lines, paragraphs, headings that end in ":", and rows below them. A row is an option or a word with
# its text beside it (two spaces or more), or on the next lines, indented by six.
page() { # SYNOPSIS DESCRIPTION OPTIONS HEADING: what stands before each
    awk -v synopsis="$1" -v description="$2" -v options="$3" -v heading="$4" '
        function plain(text) {
            gsub(/\\/, "\\e", text)
            gsub(/-/, "\\-", text)
            if (text ~ /^[.\047]/)
                text = "\\&" text
            return text
        }
        function bold(text) { gsub(/"/, "\\(dq", text); return ".B \"" text "\"" }
        /^Usage: / || (in_usage && /^       /) {
            if (!in_usage)
                print synopsis
            else
                print ".br"
            in_usage = 1
            sub(/^(Usage: |       )/, "")
            print bold(plain($0))
            next
        }
        in_usage { in_usage = 0; print description }
        /^ *$/ { gap = 1; next }
        /^[^ ].*:$/ && gap { # a heading
            sub(/:$/, "")
            print heading " \"" plain($0) "\""
            gap = in_row = 0
            options = "" # they are below headings of their own
            next
        }
        /^[^ ]/ {
            if (gap || in_row)
                print ".PP"
            print plain($0)
            gap = in_row = 0
            next
        }
        /^      +[^- ]/ && !/[^ ]   *[^ ]/ && in_row { # the text below a row
            sub(/^ +/, "")
            if (below++)
                print ".br"
            print plain($0)
            gap = 0
            next
        }
        {
            sub(/^ +/, "")
            at = match($0, /   *[^ ]/)
            if (/^-/ && options) {
                print options
                options = ""
            }
            print ".TP"
            if (at) {
                print bold(plain(substr($0, 1, at - 1)))
                rest = substr($0, at)
                sub(/^ +/, "", rest)
                print plain(rest)
            } else
                print bold(plain($0))
            in_row = 1
            below = at ? 1 : 0
            gap = 0
        }'
}

upper=$(echo "$name" | tr '[:lower:]' '[:upper:]')
printf '.TH "%s" 1 "" "Shoal %s" "Shoal"\n' "$upper" "$version"
printf '.ad l\n.SH NAME\n%s \\- %s\n' "$name" "$summary"
"$program" --help | page '.SH SYNOPSIS' '.SH DESCRIPTION' '.SH OPTIONS' '.SH'
for command; do
    printf '.SH "%s %s"\n' "$name" "$command"
    "$program" "$command" --help | page '.PP' '.PP' '' '.SS'
done
printf '.SH "EXIT STATUS"\n0: success. 1: failed. 2: the command line, the configuration or the input is wrong.\n'
printf '138: a peer was lost; another try may succeed. 130, 143: stopped by a signal.\n'
printf '.SH "SEE ALSO"\n'
for other in shoal shoal-agent shoal-operator; do
    [ "$other" = "$name" ] || printf '.BR %s (1)\n' "$(printf '%s' "$other" | sed 's/-/\\-/')"
done
