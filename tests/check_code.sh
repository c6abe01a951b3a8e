#!/bin/bash
# What a tool can judge in C, by one reading of all sources: calls that are banned, functions that are too long, functions that a
# header of the product declares and nothing in the product calls, comments whose end was torn off. A line per violation; exit
# code 1 if there is any.
set -u
cd "$(dirname "$0")/.." || exit
# Calls that the product may not make, and what to use instead. They overrun a buffer, hide a number that is wrong, or share memory between threads.
banned='
strcpy strcat sprintf vsprintf stpcpy gets:str_* of base/str.h, or snprintf with the size
strncpy strncat:snprintf; these leave texts without an end
atoi atol atoll atof:str_* of base/str.h, or strtol with its end checked
strtok localtime gmtime asctime ctime readdir_r:the reentrant function of that name (_r)
tmpnam tempnam mktemp:mkstemp or mkdtemp
alloca:mem_* of base/mem.h
rand srand random srandom drand48:kernels/random.h, or getrandom for secrets
system popen:posix_spawn with a list of arguments
'
# What only tests call and yet is the module's own: no test can see or set it from outside.
for_tests='
device_memory_reset_peak device_memory_set_limit:benches and tests that fill a device
device_library_attentions:a test or bench asks who did an op
executor_running http_in_flight:what a test waits for
optim_defaults:the defaults of a row
plan_print:plans are compared as texts
tokenizer_open_json:fuzzed
'
longest=70 # lines of a function with its braces, without its tables
# shellcheck disable=SC2016 # awk has these variables
git ls-files --cached --others --exclude-standard -- '*.c' '*.h' '*.cc' '*.cu' | while read -r f; do [ -e "$f" ] && echo "$f"; done |
    banned=$banned for_tests=$for_tests longest=$longest xargs awk '
    function complain(text) { print FILENAME ":" FNR ": " text; bad = 1 }
    function learn(text, told,   lines, names, count, i, n, at) { # rows "NAME...:REASON"
        count = split(text, lines, "\n")
        for (i = 1; i <= count; i++)
            if ((at = index(lines[i], ":")))
                for (n = split(substr(lines[i], 1, at - 1), names, " "); n; n--)
                    told[names[n]] = substr(lines[i], at + 1)
    }
    BEGIN {
        learn(ENVIRON["banned"], instead)
        learn(ENVIRON["for_tests"], kept)
        longest = ENVIRON["longest"] + 0
    }
    FNR == 1 {
        comment = opened = table = 0
        product = FILENAME !~ /^tests\//
        header = FILENAME ~ /\.h$/
    }
    /^ *(\* )?\*\/$/ && above !~ /^ *\/\*$/ { complain("*/ alone: clang-format has wrapped the comment; take a word of the line above along") }
    { above = $0 }
    $0 == "{" { opened = FNR; tables = 0 }
    opened && /^    static const .*\{$/ { table = FNR }
    table && /\};$/ { tables += FNR - table + 1; table = 0 }
    $0 == "}" && opened {
        if (FNR - opened + 1 - tables > longest)
            complain("a function of " FNR - opened + 1 - tables " lines; at most " longest)
        opened = 0
    }
    # comments and texts are no calls
    {
        code = $0
        if (comment && !sub(/^.*\*\//, "", code))
            next
        comment = 0
        gsub(/"([^"\\]|\\.)*"/, "\"\"", code)
        gsub(/\/\*([^*]|\*[^\/])*\*\//, "", code)
        sub(/\/\/.*/, "", code)
        if (sub(/\/\*.*/, "", code))
            comment = 1
    }
    product && code ~ /\(/ && code !~ /^#/ {
        rest = code
        while (match(rest, /[A-Za-z_][A-Za-z0-9_]*\(/)) {
            name = substr(rest, RSTART, RLENGTH - 1)
            before = RSTART > 1 ? substr(rest, RSTART - 1, 1) : ""
            rest = substr(rest, RSTART + RLENGTH)
            if (name in instead && before !~ /[.>]/)
                complain(name "() is banned: " instead[name])
        }
    }
    product && header && code ~ /^[a-z].*[ *][a-z][a-z0-9_]*\(/ && code !~ /^(static|typedef|return)/ {
        name = code
        sub(/\(.*/, "", name)
        sub(/.*[ *]/, "", name)
        if (!(name in declared))
            declared[name] = FILENAME ":" FNR
    }
    product {
        rest = code
        while (match(rest, /[A-Za-z_][A-Za-z0-9_]*/)) {
            name = substr(rest, RSTART, RLENGTH)
            seen[name]++
            rest = substr(rest, RSTART + RLENGTH)
        }
    }
    END {
        for (name in kept)
            if (!(name in declared) || seen[name] > 2) {
                print "tests/check_code.sh: " name " is no function that only tests call: remove it from for_tests"
                bad = 1
            }
        for (name in declared)
            if (seen[name] <= 2 && !(name in kept)) { # its declaration and its definition
                print declared[name] ": " name "() is called by nothing in the product: remove it, or move it to the tests"
                bad = 1
            }
        exit bad
    }'
