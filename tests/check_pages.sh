#!/bin/bash
# What a tool can judge in the pages: lines and paragraphs that are too long, links to nowhere, pictures that are not those of their
# sources, texts in docs/troubleshooting.md that no program says. A line per violation; exit code 1 if there is any.
# shellcheck disable=SC2016 # backticks are quotes of Markdown here
set -u
cd "$(dirname "$0")/.." || exit
bad=0
report() { [ -z "$1" ] || { echo "$1"; bad=1; }; } # VIOLATIONS
pages=(README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md docs/*.md docs/*/*.md)

# Code, rows of tables and what is generated (docs/configuration.md) are no prose.
report "$(awk -v longest=120 -v most=80 '
    function ended() { if (words >= most) print file ":" first ": a paragraph of " words " words; fewer than " most; words = 0 }
    FNR == 1 { ended(); code = 0; file = FILENAME }
    /^ *```/ { ended(); code = !code; next }
    code || /^\|/ || file == "docs/configuration.md" { ended(); next }
    length($0) > longest { print file ":" FNR ": " length($0) " columns; at most " longest }
    /^ *$/ || /^#/ || /^    / && !words { ended(); next }
    /^ *([-*]|[0-9]+\.) / { ended() }
    { if (!words) first = FNR; words += NF }
    END { ended() }' "${pages[@]}")"

# Links to files; what is behind "#" is not looked at.
report "$(grep -noE '\]\([^)]+\)' "${pages[@]}" | sed 's/\](\([^)#]*\)[^)]*)$/\1/' | while IFS=: read -r page line target; do
    [[ -z $target || $target == http* || -e $(dirname "$page")/$target ]] || echo "$page:$line: no $target"
done)"
# Files of the tree that pages name: `agent/nn/tape.h`, `agent/models/NAME.c`, `operator/*/policy_*.h`
report "$(grep -noE '`(base|operator|kernels|agent|cli|tests|deploy|docs|charts|kustomize)/[^` ]*`' "${pages[@]}" | grep -v '^CHANGELOG' | tr -d '`' |
    while IFS=: read -r page line path; do
        compgen -G "${path//NAME/*}" >/dev/null || echo "$page:$line: no $path"
    done)"
report "$(for page in docs/*.md docs/*/*.md; do
    [ "$page" = docs/README.md ] || grep -qF "(${page#docs/})" docs/README.md || echo "docs/README.md does not list ${page#docs/}"
done)"

report "$(for source in docs/pictures/*.txt; do
    awk -f docs/pictures/draw.awk "$source" | cmp -s - "${source%.txt}.svg" ||
        echo "${source%.txt}.svg is not what $source draws: awk -f docs/pictures/draw.awk $source >${source%.txt}.svg"
done)"

# Quoted in the first column of troubleshooting, each part between "..."; texts of the sources with their pieces joined. Words of one
# piece, and Kubernetes' own, are not judged.
texts=$(git ls-files --cached --others --exclude-standard -- '*.c' '*.h' | grep -vE '^tests/' | while read -r f; do [ -e "$f" ] && echo "$f"; done |
    xargs cat | tr '\n' ' ' | sed 's/" *API_KIND *"/PyTorchJob/g; s/API_KIND *"/"PyTorchJob/g; s/" *"//g; s/\\"/"/g')
report "$(sed -n 's/^| \(.*`.*\) | .* | .* |$/\1/p' docs/troubleshooting.md | grep -oE '`[^`]+`' | tr -d '`' | sed 's/ *\.\.\. */\n/g' |
    grep -E '.{4}' | grep -vxE 'OOMKilled|Init:0/1|unknown option --|FailedUpdateStatus' | while read -r part; do
    [[ $texts == *"$part"* ]] || echo "docs/troubleshooting.md: no program says \"$part\""
done)"
exit "$bad"
