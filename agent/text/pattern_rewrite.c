/* The facts are of Oniguruma 6.9 with its own syntax, as the tokenizers library uses it: its doc/RE
 * and regparse.c, and a comparison with the library over random expressions. */
#include "agent/text/pattern_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static void insert(struct str *out, size_t offset, const char *text)
{
    size_t length = strlen(text), behind = out->length - offset;
    str_add(out, text);
    if (out->truncated)
        return;
    memmove(out->text + offset + length, out->text + offset, behind);
    memcpy(out->text + offset, text, length);
}

/* ---- groups ---- */

static int open_group(struct rewriting *r, size_t bytes, bool caseless)
{
    if (r->depth == PATTERN_MAX_GROUPS)
        return pattern_refuse(r, 1, "is within too many others");
    r->groups[r->depth++] = (struct group){.begin = r->out->length, .caseless = r->caseless};
    str_add_bytes(r->out, r->at, bytes);
    r->at += bytes;
    r->item = ITEM_NONE;
    r->last = '\0';
    r->caseless = caseless;
    return 0;
}

static int close_group(struct rewriting *r)
{
    if (r->depth == 1)
        return error_set(r->err, ERR_INPUT, "expression, byte %td: ) without (",
                         r->at - r->expression);
    const struct group *group = &r->groups[--r->depth];
    for (int i = 0; i <= group->closings; i++)
        str_add(r->out, ")");
    pattern_begin_item(r);
    r->item_begin = group->begin;
    r->caseless = group->caseless;
    r->at++;
    return 0;
}

/* "(?i)" holds to the end of the group that it is in, and what is behind it is one group there:
 * a(?i)b|c is a(?i:b|c). "(?m" makes the dot match newlines there and another thing here. */
static int rewrite_flags(struct rewriting *r)
{
    size_t flags = strspn(r->at + 2, "imsxna-");
    char end = r->at[2 + flags];
    bool caseless = r->caseless, off = false;
    if (strcspn(r->at + 2, "msxna") < flags || (end != ')' && end != ':'))
        return pattern_refuse(r, 2 + flags, "is not supported: only the flag i is");
    for (const char *flag = r->at + 2; *flag != end; flag++) {
        off |= *flag == '-';
        caseless = *flag == 'i' ? !off : caseless;
    }
    if (end == ':')
        return open_group(r, 3 + flags, caseless);
    r->groups[r->depth - 1].closings++;
    str_add_bytes(r->out, r->at, 2 + flags);
    str_add(r->out, ":");
    r->at += 3 + flags;
    r->item = ITEM_NONE;
    r->last = '\0';
    r->caseless = caseless;
    return 0;
}

static int rewrite_group(struct rewriting *r)
{
    static const char *const kinds[] = {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (str_starts_with(r->at, kinds[i]))
            return open_group(r, strlen(kinds[i]), r->caseless);
    if (r->at[1] == '*')
        return pattern_refuse(r, 2, "is not supported");
    if (r->at[1] != '?')
        return open_group(r, 1, r->caseless);
    if (r->at[2] == '<' && strchr(r->at, '>')) /* a name, which PCRE2 checks */
        return open_group(r, 1 + strcspn(r->at, ">"), r->caseless);
    if (r->at[2] == '#') {
        size_t length = strcspn(r->at, ")");
        r->at += length + (r->at[length] == ')');
        return 0;
    }
    return r->at[2] && strchr("imsxna-", r->at[2]) ? rewrite_flags(r)
                                                   : pattern_refuse(r, 3, "is not supported");
}

/* ---- quantifiers ---- */

struct interval {
    size_t length; /* of its text; 0: it is none, and its { a character for itself */
    long least, most;
    bool fixed; /* {n} */
};

/* {n}, {n,}, {n,m} and {,m}. */
static struct interval read_interval(const char *at)
{
    static const char digits[] = "0123456789";
    size_t low = strspn(at + 1, digits);
    bool comma = at[1 + low] == ',';
    size_t high = comma ? strspn(at + 2 + low, digits) : 0, end = 1 + low + comma + high;
    if (*at != '{' || low + high == 0 || at[end] != '}')
        return (struct interval){0};
    struct interval interval = {
        .length = end + 1, .least = strtol(at + 1, NULL, 10), .fixed = !comma};
    interval.most = !comma ? interval.least : high > 0 ? strtol(at + 2 + low, NULL, 10) : LONG_MAX;
    return interval;
}

/* One quantifier takes one suffix here: *? and *+, {n,m}?, but never {n}? and {n,m}+, which are two
 * quantifiers, and the second is of all that is before it. */
static size_t quantifier_length(const struct rewriting *r, const struct interval *interval)
{
    size_t length = interval->length ? interval->length : 1;
    char suffix = r->at[length];
    return length +
           (interval->length ? suffix == '?' && !interval->fixed : suffix == '?' || suffix == '+');
}

static int rewrite_quantifier(struct rewriting *r, const struct interval *interval)
{
    size_t length = quantifier_length(r, interval);
    /* There {1} goes away, and what follows quantifies the last character of (?:ab){1}. PCRE2 finds
     * no empty match of some groups with {0}. */
    if (r->item == ITEM_QUANTIFIED && r->once)
        return pattern_refuse(r, length, "is not supported behind {1}");
    if (interval->length && interval->most == 0)
        return pattern_refuse(r, length, "is not supported");
    if (r->item == ITEM_QUANTIFIED) {
        insert(r->out, r->item_begin, "(?:");
        str_add(r->out, ")");
    }
    if (r->item == ITEM_NONE)
        r->item_begin = r->out->length;               /* PCRE2 refuses it */
    bool lower = interval->length && r->at[1] == ','; /* PCRE2 10.42 reads {,m} as a text */
    str_add(r->out, lower ? "{0" : "");
    str_add_bytes(r->out, r->at + lower, length - lower);
    r->item = ITEM_QUANTIFIED;
    r->once = interval->least == 1 && interval->most == 1;
    r->last = '\0';
    r->at += length;
    return 0;
}

/* ---- the whole ---- */

static int rewrite_next(struct rewriting *r)
{
    struct interval interval = read_interval(r->at);
    switch (*r->at) {
    case '\\':
        return pattern_rewrite_escape(r);
    case '[':
        return pattern_rewrite_class(r);
    case '(':
        return rewrite_group(r);
    case ')':
        return close_group(r);
    case '*':
    case '+':
    case '?':
        return rewrite_quantifier(r, &interval);
    case '{':
        return interval.length ? rewrite_quantifier(r, &interval) : pattern_rewrite_character(r);
    case '|':
        str_add(r->out, "|");
        r->at++;
        r->item = ITEM_NONE;
        r->last = '\0';
        return 0;
    default:
        return pattern_rewrite_character(r);
    }
}

int pattern_rewrite(const char *expression, struct str *out, struct error *err)
{
    struct rewriting r = {.expression = expression, .at = expression, .out = out, .err = err};
    r.depth = 1; /* the whole is a group, too */
    r.groups[0].begin = out->length;
    while (*r.at)
        if (rewrite_next(&r) < 0)
            return -1;
    if (r.depth > 1)
        return error_set(err, ERR_INPUT, "expression %.200s: ( without )", expression);
    for (int i = 0; i < r.groups[0].closings; i++)
        str_add(out, ")");
    return 0;
}
