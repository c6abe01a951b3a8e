#include "agent/telemetry/page_ranks.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/contract.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/page.h"

struct seen {
    const struct json *row;
    size_t at; /* in the array */
    bool is_well;
    double compute_ratio; /* 0: not known */
};

static struct seen seen_of(const struct json *row, size_t at)
{
    const struct json *state = json_get(row, PROGRESS_RANK_STATE),
                      *ratio = json_get(row, PROGRESS_RANK_COMPUTE);
    const char *word = json_is_string(state) ? json_as_text(state) : "";
    return (struct seen){.row = row,
                         .at = at,
                         .is_well = strcmp(word, PROGRESS_RANK_HUNG) != 0 &&
                                    strcmp(word, PROGRESS_RANK_STRAGGLING) != 0,
                         .compute_ratio = json_is_number(ratio) ? json_as_number(ratio) : 0};
}

static int by_need(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    if (x->is_well != y->is_well)
        return x->is_well ? 1 : -1;
    if (x->compute_ratio != y->compute_ratio)
        return x->compute_ratio > y->compute_ratio ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

static int by_place(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    return x->at < y->at ? -1 : 1;
}

struct json *page_ranks(const char *ranks, int64_t world_size, int64_t *ret_hidden)
{
    struct json *all = json_parse_text(ranks, JSON_STRICT, NULL);
    *ret_hidden = 0;
    if (!all || json_array_count(all) <= PAGE_RANKS_MAX)
        return all;
    size_t count = json_array_count(all);
    struct seen *list = xcalloc(count, sizeof *list);
    const struct json *row;
    size_t at = 0;
    json_each_item(row, all) {
        list[at] = seen_of(row, at);
        at++;
    }
    qsort(list, count, sizeof *list, by_need);
    qsort(list, PAGE_RANKS_MAX, sizeof *list, by_place);
    struct json *kept = json_new_array();
    for (at = 0; at < PAGE_RANKS_MAX; at++)
        json_append(kept, json_clone(list[at].row));
    free(list);
    json_free(all);
    *ret_hidden = (world_size > (int64_t)count ? world_size : (int64_t)count) - PAGE_RANKS_MAX;
    return kept;
}
