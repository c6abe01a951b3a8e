#include "tests/exposition_check.h"

#include "tests/support.h"

#include "base/mem.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 128, LINE_BYTES = 1024, SEEN_MAX = 1024 };

struct page {
    char name[NAME_BYTES], type[NAME_BYTES]; /* of the metric we are in */
    bool has_help, has_samples;
    char *metrics[SEEN_MAX], *samples[SEEN_MAX];
    int metric_count, sample_count;
    double bucket; /* the last one's count; below 0: none yet */
    bool has_infinity, has_sum, has_count;
    const char *line;
};

static void check(const struct page *p, bool good, const char *what)
{
    if (!good)
        fail_msg("%s: %s", what, p->line);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && !strcmp(text + length - tail, end);
}

static size_t name_length(const char *text)
{
    size_t n = 0;
    while (isalnum((unsigned char)text[n]) || text[n] == '_' || text[n] == ':')
        n++;
    return isdigit((unsigned char)text[0]) ? 0 : n;
}

/* What promtool's linter says of names. */
static void check_name(const struct page *p)
{
    static const char *const not_base[] = {
        "milliseconds", "ms",        "microseconds", "us",        "nanoseconds", "minutes",
        "hours",        "days",      "kilobytes",    "kb",        "megabytes",   "mb",
        "mib",          "gigabytes", "gb",           "gib",       "bits",        "percent",
        "fahrenheit",   "kelvin",    "milliwatts",   "megahertz", "mhz",
    };
    if (!strncmp(p->name, "DCGM_FI_", 8)) /* NVIDIA's own, as dashboards ask for them */
        return;
    check(p, ends_with(p->name, "_total") == !strcmp(p->type, "counter"),
          "counters end in _total, and nothing else does");
    check(p, !strstr(p->name, p->type), "a type in the name");
    for (size_t i = 0; i < array_length(not_base); i++) {
        char part[NAME_BYTES], inner[NAME_BYTES];
        snprintf(part, sizeof part, "_%s", not_base[i]);
        snprintf(inner, sizeof inner, "_%s_", not_base[i]);
        check(p, !ends_with(p->name, part) && !strstr(p->name, inner), "no base unit");
    }
    for (const char *c = p->name; *c; c++)
        check(p, !isupper((unsigned char)*c) && *c != ':', "no lower case name");
}

static void end_metric(const struct page *p)
{
    if (!p->name[0])
        return;
    check(p, p->has_help && p->type[0], "no HELP or TYPE before");
    if (!strcmp(p->type, "histogram") && p->has_samples)
        check(p, p->has_infinity && p->has_sum && p->has_count, "a histogram is not complete");
}

static void remember(struct page *p, char **seen, int *count, const char *text, size_t length)
{
    char *copy = xcalloc(1, length + 1);
    memcpy(copy, text, length);
    for (int i = 0; i < *count; i++)
        check(p, strcmp(seen[i], copy) != 0, "there twice");
    assert_true(*count < SEEN_MAX);
    seen[(*count)++] = copy;
}

static void take_comment(struct page *p, const char *line)
{
    char kind[8], name[NAME_BYTES];
    int end = 0;
    check(p, sscanf(line, "# %7s %127s %n", kind, name, &end) == 2 && end > 0, "no HELP or TYPE");
    check(p, name_length(name) == strlen(name), "no name");
    if (!strcmp(kind, "HELP")) {
        end_metric(p);
        remember(p, p->metrics, &p->metric_count, name, strlen(name));
        snprintf(p->name, sizeof p->name, "%s", name);
        p->type[0] = '\0';
        p->has_help = line[end] != '\0';
        p->has_samples = p->has_infinity = p->has_sum = p->has_count = false;
        p->bucket = -1;
        check(p, p->has_help, "an empty HELP");
        return;
    }
    check(p, !strcmp(kind, "TYPE") && !strcmp(name, p->name) && !p->type[0], "TYPE out of place");
    snprintf(p->type, sizeof p->type, "%s", line + end);
    check(p,
          !strcmp(p->type, "gauge") || !strcmp(p->type, "counter") || !strcmp(p->type, "histogram"),
          "no known type");
    check_name(p);
}

/* The place behind the labels; *ret_le is the value of "le", or NaN. */
static const char *skip_labels(const struct page *p, const char *at, double *ret_le)
{
    *ret_le = (double)NAN;
    if (*at != '{')
        return at;
    do {
        at++;
        size_t n = name_length(at);
        check(p, n > 0 && at[n] == '=' && at[n + 1] == '"', "a label is wrong");
        bool is_le = n == 2 && !strncmp(at, "le", 2);
        at += n + 2;
        if (is_le)
            *ret_le = strtod(at, NULL);
        for (; *at && *at != '"'; at++)
            if (*at == '\\')
                check(p, *++at == '\\' || *at == '"' || *at == 'n', "a label is not escaped");
        check(p, *at == '"', "a label does not end");
        at++;
    } while (*at == ',');
    check(p, *at == '}', "labels do not end");
    return at + 1;
}

static void take_histogram(struct page *p, const char *suffix, double le, double value)
{
    if (!strcmp(suffix, "_bucket")) {
        check(p, !isnan(le) && value >= p->bucket, "buckets are not cumulative");
        p->bucket = value;
        p->has_infinity |= isinf(le);
    } else if (!strcmp(suffix, "_sum")) {
        p->has_sum = true;
    } else {
        check(p, !strcmp(suffix, "_count") && value == p->bucket, "not the count of +Inf");
        p->has_count = true;
    }
}

static void take_sample(struct page *p, const char *line)
{
    size_t length = name_length(line), own = strlen(p->name);
    char suffix[NAME_BYTES];
    double le;
    check(p, length >= own && !strncmp(line, p->name, own), "a sample out of place");
    snprintf(suffix, sizeof suffix, "%.*s", (int)(length - own), line + own);
    const char *end = skip_labels(p, line + length, &le);
    remember(p, p->samples, &p->sample_count, line, (size_t)(end - line));
    char *rest;
    check(p, *end == ' ', "no value");
    double value = strtod(end + 1, &rest);
    check(p, rest != end + 1 && *rest == '\0', "no number");
    p->has_samples = true;
    if (!strcmp(p->type, "histogram"))
        take_histogram(p, suffix, le, value);
    else
        check(p, !suffix[0], "a sample out of place");
    if (!strcmp(p->type, "counter"))
        check(p, value >= 0, "a counter below 0");
}

void exposition_check(const char *text)
{
    auto_free struct page *p = xcalloc(1, sizeof *p);
    auto_free char *copy = xstrdup(text);
    assert_true(*text && text[strlen(text) - 1] == '\n');
    char *rest = copy;
    for (char *line = strsep(&rest, "\n"); rest; line = strsep(&rest, "\n")) {
        p->line = line;
        assert_true(strlen(line) < LINE_BYTES);
        if (line[0] == '#')
            take_comment(p, line);
        else
            take_sample(p, line);
    }
    end_metric(p);
    for (int i = 0; i < p->metric_count; i++)
        free(p->metrics[i]);
    for (int i = 0; i < p->sample_count; i++)
        free(p->samples[i]);
}

double exposition_check_value(const char *page, const char *sample)
{
    size_t length = strlen(sample);
    for (const char *at = page; at; at = strchr(at, '\n'), at = at ? at + 1 : NULL)
        if (!strncmp(at, sample, length) && at[length] == ' ')
            return strtod(at + length, NULL);
    fail_msg("no sample %s in\n%s", sample, page);
    return 0;
}
