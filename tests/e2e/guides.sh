# shellcheck shell=bash
# The commands of the pages in docs/guides: `. tests/e2e/guides.sh`, after tests/tap.sh. Blocks that begin with ```sh are run on any
# machine, ```sh cluster on a cluster, ```sh elsewhere only where neither is (a registry, a cloud, another's prompt).

# guide_block PAGE KIND NUMBER: prints the NUMBERth block (from 1) of the kind ("", cluster, elsewhere); fails if there is none.
guide_block() {
    awk -v fence="\`\`\`sh${2:+ $2}" -v number="$3" '
        /^```/ && inside { inside = 0; if (here) exit; next }
        /^```/ { inside = 1; here = $0 == fence && ++seen == number; next }
        here { print; printed = 1 }
        END { exit !printed }' "docs/guides/$1.md"
}
guide_count() { # PAGE KIND
    grep -cx "\`\`\`sh${2:+ $2}" "docs/guides/$1.md"
}
