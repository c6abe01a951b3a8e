# Draws a picture: awk -f draw.awk NAME.txt >NAME.svg. A line of the source is one mark; coordinates are pixels.
#
#   size WIDTH HEIGHT "TITLE"                        first
#   box ID X Y WIDTH HEIGHT KIND "TEXT"...           a line of text each, the first one bold
#   arrow FROM.SIDE TO.SIDE ["TEXT"]                 SIDE: left right top bottom; bends where it must
#   lane Y "NAME"                                    a horizontal line with its name at the left
#   span LANE_Y X1 X2 KIND "TEXT"                    work on a lane
#   after X1 Y1 X2 Y2                                the second waits for the first
#   note X Y "TEXT"                                  small
#
# KIND: plain pure edge out, which choose the colour.
function quoted(line,   n, parts, i) { # the texts in quotes, into texts[]
    n = split(line, parts, "\"")
    for (i = 2; i <= n; i += 2)
        texts[i / 2] = parts[i]
    return int(n / 2)
}
function escaped(text) { gsub(/&/, "\\&amp;", text); gsub(/</, "\\&lt;", text); gsub(/>/, "\\&gt;", text); return text }
function say(x, y, class, text) { printf "<text x=\"%s\" y=\"%s\" class=\"%s\">%s</text>\n", x, y, class, escaped(text) }
function wrong(what) { printf "%s:%d: %s\n", FILENAME, FNR, what >"/dev/stderr"; failed = 1; exit 1 }
function place(at,   p) { # ID.SIDE, into px and py
    split(at, p, ".")
    if (!(p[1] in left))
        wrong("no box " p[1] " above")
    px = p[2] == "left" ? left[p[1]] : p[2] == "right" ? left[p[1]] + wide[p[1]] : left[p[1]] + wide[p[1]] / 2
    py = p[2] == "top" ? top[p[1]] : p[2] == "bottom" ? top[p[1]] + high[p[1]] : top[p[1]] + high[p[1]] / 2
    side = p[2]
}
/^#/ || NF == 0 { next }
$1 == "size" {
    quoted($0)
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %s %s\" width=\"%s\" height=\"%s\" role=\"img\">\n", $2, $3, $2, $3
    printf "<title>%s</title>\n", escaped(texts[1])
    print "<style>text{font:13px sans-serif;fill:#1b1f24}.head{font-weight:bold;text-anchor:middle}.in{text-anchor:middle}"
    print ".small{font-size:12px;fill:#57606a}.lane{font-weight:bold}rect{stroke:#57606a;rx:6}.plain{fill:#f6f8fa}.pure{fill:#ddf4ff}"
    print ".edge{fill:#fff8c5}.out{fill:#dafbe1}path{stroke:#57606a;fill:none;stroke-width:1.5;marker-end:url(#tip)}"
    print ".line{stroke:#d0d7de;marker-end:none}</style>"
    print "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">" \
        "<path d=\"M0 0L8 4L0 8z\" style=\"fill:#57606a;stroke:none;marker-end:none\"/></marker></defs>"
    printf "<rect width=\"%s\" height=\"%s\" style=\"fill:#fff;stroke:none\"/>\n", $2, $3
    next
}
$1 == "box" {
    left[$2] = $3; top[$2] = $4; wide[$2] = $5; high[$2] = $6
    printf "<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" class=\"%s\"/>\n", $3, $4, $5, $6, $7
    n = quoted($0)
    for (i = 1; i <= n; i++)
        say($3 + $5 / 2, $4 + $6 / 2 + 5 + (i - (n + 1) / 2) * 17, i == 1 ? "head" : "in small", texts[i])
    next
}
$1 == "arrow" {
    place($2); x1 = px; y1 = py; from = side
    place($3); x2 = px; y2 = py
    if (x1 == x2 || y1 == y2)
        printf "<path d=\"M%s %sL%s %s\"/>\n", x1, y1, x2, y2
    else if ((from == "left" || from == "right") && (side == "top" || side == "bottom"))
        printf "<path d=\"M%s %sH%sV%s\"/>\n", x1, y1, x2, y2
    else if (from == "left" || from == "right") # across, along, across
        printf "<path d=\"M%s %sH%sV%sH%s\"/>\n", x1, y1, (x1 + x2) / 2, y2, x2
    else
        printf "<path d=\"M%s %sV%sH%sV%s\"/>\n", x1, y1, (y1 + y2) / 2, x2, y2
    if (quoted($0))
        say((x1 + x2) / 2 + (x1 == x2 ? 6 : 0), (y1 + y2) / 2 - (y1 == y2 ? 6 : 0) + (x1 == x2 ? 4 : 0), x1 == x2 ? "small" : "in small", texts[1])
    next
}
$1 == "lane" {
    quoted($0)
    say(10, $2 + 5, "lane", texts[1])
    printf "<path class=\"line\" d=\"M120 %sH%s\"/>\n", $2, $3
    next
}
$1 == "span" {
    quoted($0)
    printf "<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"28\" class=\"%s\"/>\n", $3, $2 - 14, $4 - $3, $5
    say(($3 + $4) / 2, $2 + 5, "in", texts[1])
    next
}
$1 == "after" { printf "<path d=\"M%s %sL%s %s\"/>\n", $2, $3, $4, $5; next }
$1 == "note" { quoted($0); say($2, $3, "small", texts[1]); next }
{ wrong("what is " $1 "?") }
END {
    if (!failed)
        print "</svg>"
}
