#!/bin/bash
# Format, static analysis, headers on their own (as C, and as C++ where it reaches them), the doors between the rooms, shell scripts.
set -u
cd "$(dirname "$0")/.." || exit
failed=$(mktemp) # the steps that did
trap 'rm -f "$failed"' EXIT
# As many at once as there are cores. Each tells when it ends.
step() { # NAME COMMAND...
    while [ "$(jobs -pr | wc -l)" -ge "$(nproc)" ]; do
        wait -n
    done
    told "$@" &
}
told() { # NAME COMMAND...
    local name=$1 output
    shift
    if output=$("$@" 2>&1); then
        echo "lint: $name"
    else
        printf 'lint: %s FAILED\n%s\n' "$name" "$(head -n 60 <<<"$output")"
        echo "$name" >>"$failed"
    fi
}
files() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do [ -e "$f" ] && echo "$f"; done; }

check_format() { files '*.c' '*.h' '*.cc' '*.cu' | xargs clang-format --dry-run --Werror; }
check_headers() { # as C++ those that .cu and .cc files reach
    local reached
    reached=" $(tests/headers.sh cxx | tr '\n' ' ')"
    files '*.h' | while read -r header; do
        flags=()
        case $header in # against the emulation's <cuda_runtime.h>
        kernels/cuda/* | tests/emulation/*) flags=(-DSHOAL_EMULATION -Itests/emulation/include -Wno-unknown-pragmas) ;;
        esac
        gcc -std=gnu17 -Wall -Wextra -Werror -I. -D_GNU_SOURCE "${flags[@]}" -fsyntax-only -x c "$header" || exit 1
        [[ $reached != *" $header "* ]] ||
            g++ -std=c++17 -Wall -Wextra -Werror -I. -D_GNU_SOURCE "${flags[@]}" -fsyntax-only -x c++ "$header" || exit 1
    done
}
check_analysis() {
    # varFuncNullUB: POSIX makes NULL a (void *), and the compiler checks the lists that it ends ("sentinel")
    files '*.c' | grep -v '^tests/' | xargs cppcheck --quiet --std=c11 --enable=warning,portability \
        --inline-suppr --suppress=internalAstError --suppress=varFuncNullUB --error-exitcode=1 -I. -D_GNU_SOURCE -j2
}
check_clang() { make --no-print-directory V=fuzz fuzz-syntax; }
check_clang_cuda() { make --no-print-directory cuda-syntax; }
# `! COMMAND` for a check takes what could not find out for a "no", and under set -e it cannot fail (answers_no in tests/tap.sh).
# It may stand in conditions, before || and before kill -0, which says nothing else.
check_negations() {
    local found
    # shellcheck disable=SC2016 # awk's
    found=$(files '*.sh' | xargs awk '
        /^ *#/ || !/(^|[{;&(]) *! [a-z"$]/ || /; then$/ || /(if|while|until|elif) ! / || /! kill -0/ { next }
        !/! [^|]*\|\| / || /! [^|]*[^|]\|[^|]/ { print FILENAME ":" FNR ": " $0 }') || return
    [ -z "$found" ] || { echo "a negation that succeeds where its command cannot tell; see answers_no in tests/tap.sh:"; echo "$found"; return 1; }
}
check_scripts() {
    local shut
    shut=$(find tests -name 'test_*.sh' ! -perm -u+x)
    [ -z "$shut" ] || { echo "a test that cannot be executed (chmod +x): $shut"; return 1; }
    { files '*.sh'; echo .ci/run; } | xargs shellcheck --external-sources --exclude=SC2317
}

# The marks of tests/cluster/test_operator_rows.sh, each the name of a check, or said right above a test in C (one that nobody
# runs would not compile).
marks_said() {
    sed -nE 's/^[^#]*check "(([CDIPWX][0-9]{2}[ :])+).*/\1/p' tests/cluster/*.sh tests/newer/*.sh
    awk '/^\/\* [CDIPWX][0-9][0-9]/ { mark = $2 } /^static void .*\(void \*\*state\)$/ { print mark } !/^( \*|\/\*)/ { mark = "" }' \
        tests/operator/test_*.c tests/operator/*/test_*.c
}
check_marks() {
    local missing
    missing=$(comm -23 <(printf '%s\n' C{01..35} D0{1..8} I0{1..3} P{01..12} W{01..12} X{01..25}) \
        <(marks_said | grep -oE '[CDIPWX][0-9]{2}' | sort -u))
    [ -z "$missing" ] || { echo "no check is named after: ${missing//$'\n'/ }"; return 1; }
}

# the dearest first
step "shell scripts" check_scripts
step "fuzz targets compile with clang" check_clang
step "headers stand alone, in C and where C++ reaches them" check_headers
step "static analysis" check_analysis
step "CUDA sources compile with clang" check_clang_cuda
step "format" check_format
step "include guards by path, extern \"C\" where C++ reaches, private headers" tests/headers.sh
step "doors between rooms" tests/check_layers.sh
step "calls, function lengths, dead functions" tests/check_code.sh
step "pages and their pictures" tests/check_pages.sh
step "mutations change the sources they name" tests/check_mutations.sh
step "no negation that cannot fail" check_negations
step "marks of the training operator's behaviour" check_marks
wait
[ ! -s "$failed" ]
