#include "agent/config/profile_plan.h"

#include "agent/config/name_format.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANK = 1000000, NAME_BYTES = 1024 };

enum profile_part profile_plan_part(const struct profile_plan *p, int64_t step, bool *ret_is_last)
{
    int64_t at = step - 1 - p->start_step, window = p->warmup_steps + p->active_steps;
    if (at > 0 && p->repeat_every > 0)
        at %= p->repeat_every;
    *ret_is_last = at == window - 1;
    if (at < 0 || at >= window)
        return PROFILE_OFF;
    return at < p->warmup_steps ? PROFILE_WARMUP : PROFILE_ACTIVE;
}

/* ---- ranks ---- */

/* The number at `at`, and what follows it and its comma; false if there is none. */
static bool read_rank(const char *at, int *ret_rank, const char **ret_rest)
{
    char digits[16];
    int64_t rank;
    size_t length = strcspn(at, ",");
    *ret_rest = at + length + (at[length] == ',');
    snprintf(digits, sizeof digits, "%.*s", (int)length, at);
    if (length >= sizeof digits || !str_to_i64(digits, 0, MAX_RANK, &rank) ||
        (at[length] == ',' && !**ret_rest))
        return false;
    *ret_rank = (int)rank;
    return true;
}

int profile_ranks_check(const char *ranks, int *ret_highest, bool *ret_several, struct error *err)
{
    *ret_highest = -1;
    *ret_several = true;
    if (strcmp(ranks, "all") == 0)
        return 0;
    int count = 0, rank;
    const char *at = ranks;
    do {
        if (!read_rank(at, &rank, &at))
            return error_set(err, ERR_CONFIG,
                             "profiler.ranks: '%s' is neither \"all\" nor numbers of ranks "
                             "separated by commas (0,1)",
                             ranks);
        *ret_highest = rank > *ret_highest ? rank : *ret_highest;
        count++;
    } while (*at);
    *ret_several = count > 1;
    return 0;
}

bool profile_ranks_have(const char *ranks, int rank)
{
    if (strcmp(ranks, "all") == 0)
        return true;
    for (int each; *ranks;)
        if (read_rank(ranks, &each, &ranks) && each == rank)
            return true;
    return false;
}

/* ---- files ---- */

static bool has_field(const char *dir, const char *file, const char *field)
{
    return strstr(dir, field) || strstr(file, field);
}

/* name_format's rule is that of names: each between two slashes is one. */
static int check_names(const char *key, const char *path, struct error *err)
{
    static const char *const fields[] = {"step", "rank"};
    auto_free char *names = xstrdup(path);
    char *rest = NULL;
    for (char *name = strtok_r(names, "/", &rest); name; name = strtok_r(NULL, "/", &rest))
        if (name_format_check(name, fields, array_length(fields), err))
            return error_wrap(err, "%s", key);
    return 0;
}

int profile_path_check(const char *dir, const char *file, bool several_ranks, bool several_windows,
                       struct error *err)
{
    if (!dir[0] || !file[0] || strchr(file, '/'))
        return error_set(err, ERR_CONFIG, "profiler.%s: '%s' must be a name%s",
                         dir[0] ? "file" : "dir", dir[0] ? file : dir,
                         dir[0] ? " without '/'" : "");
    if (check_names("profiler.dir", dir, err) || check_names("profiler.file", file, err))
        return -1;
    if (several_ranks && !has_field(dir, file, "{rank"))
        return error_set(err, ERR_CONFIG,
                         "profiler.file: '%s' has no {rank}: the traces of all ranks would be one "
                         "file",
                         file);
    if (several_windows && !has_field(dir, file, "{step"))
        return error_set(err, ERR_CONFIG,
                         "profiler.file: '%s' has no {step}: with profiler.repeat_every each trace "
                         "would replace the one before",
                         file);
    return 0;
}

bool profile_is_gzip(const char *file, bool gzip)
{
    size_t length = strlen(file);
    return gzip || (length > 3 && strcmp(file + length - 3, ".gz") == 0);
}

void profile_path(const char *dir, const char *file, bool gzip, int rank, int64_t step, char *out,
                  size_t out_bytes)
{
    const struct name_field fields[] = {{"step", .number = step}, {"rank", .number = rank}};
    char folder[NAME_BYTES], name[NAME_BYTES];
    name_format(dir, fields, array_length(fields), folder, sizeof folder);
    name_format(file, fields, array_length(fields), name, sizeof name);
    bool ends = !gzip || profile_is_gzip(file, false);
    snprintf(out, out_bytes, "%s/%s%s", folder, name, ends ? "" : ".gz");
}

void profile_fixed_dir(const char *dir, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "%.*s", (int)strcspn(dir, "{"), dir);
    char *slash = strrchr(out, '/');
    if (!strchr(dir, '{'))
        return;
    if (slash)
        *slash = '\0';
    if (!slash || !out[0])
        snprintf(out, out_bytes, "%s", slash ? "/" : ".");
}
