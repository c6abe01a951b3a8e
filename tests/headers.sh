#!/bin/bash
# Headers: include guards are named after the path, extern "C" stands only in headers that C++ reaches, and a private header
# stays in its module (docs/decisions/private-headers.md).
#   tests/headers.sh       a line for each violation; exit code 1 if there is any
#   tests/headers.sh cxx   the headers that C++ reaches: those that a .cu or .cc file includes, or such a header
set -u
cd "$(dirname "$0")/.." || exit
files() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do [ -e "$f" ] && echo "$f"; done; }

reached() {
    files '*.h' '*.cu' '*.cc' | xargs grep -H '^ *# *include' | awk -F: '
        {
            split($2, parts, /["<>]/)
            path = $2 ~ /</ ? "tests/emulation/include/" parts[2] : parts[2] # the emulation stands for CUDA
            includes[$1] = includes[$1] " " path
            if ($1 ~ /\.(cu|cc)$/ && !seen[$1]++)
                todo[count++] = $1
        }
        END {
            for (i = 0; i < count; i++) {
                n = split(includes[todo[i]], next_ones, " ")
                for (k = 1; k <= n; k++)
                    if (!seen[next_ones[k]]++) {
                        print next_ones[k]
                        todo[count++] = next_ones[k]
                    }
            }
        }' | sort | comm -12 - <(files '*.h' | sort)
}

# The first #ifndef and #define of each header.
guards() {
    # shellcheck disable=SC2016 # awk's
    files '*.h' | xargs awk '
        function judge() {
            if (name && (tested != guard || defined != guard))
                print name ": its include guard is not " guard
        }
        FNR == 1 {
            judge()
            name = FILENAME
            guard = toupper("SHOAL_" name)
            gsub(/[^A-Z0-9_]/, "_", guard)
            tested = defined = ""
        }
        /^#ifndef / && tested == "" { tested = $2 }
        /^#define / && defined == "" { defined = $2 }
        END { judge() }'
}

# MODULE_internal.h is for MODULE*.c beside it, at least two of them, and for tests/.../test_MODULE*.c. Not for headers.
internals() {
    # shellcheck disable=SC2016 # awk's
    files '*.h' '*.c' '*.cu' '*.cc' | xargs grep -H '^ *# *include *"[^"]*_internal\.h"' | awk -F'[:"]' '
        {
            header = $3
            folder = name = header
            sub(/[^\/]*$/, "", folder)
            sub(/.*\//, "", name)
            sub(/_internal\.h$/, "", name)
            own = $1 ~ "^" folder name "(_[a-z0-9_]*)?\\.(c|cu|cc)$"
            test = $1 ~ "^tests/(.*/)?test_" name "(_[a-z0-9_]*)?\\.c$"
            if (!own && !test)
                print $1 ": includes " header ", which is private to " folder name "*.c"
            users[header] += own
        }
        END {
            for (header in users)
                if (users[header] < 2)
                    print header ": private to one file; write it there"
        }'
    files '*.h' | grep '_parts\.h$' | sed 's/$/: a private header is called MODULE_internal.h/'
}

violations() {
    guards
    internals
    comm -23 <(files '*.h' | xargs grep -l '^extern "C"' | sort) <(reached) |
        sed 's/$/: extern "C", but no .cu or .cc file reaches it/'
}

case ${1-} in
cxx) reached ;;
*)
    found=$(violations)
    [ -z "$found" ] || { printf '%s\n' "$found"; exit 1; }
    ;;
esac
