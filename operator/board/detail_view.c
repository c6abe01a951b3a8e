#include "operator/board/detail_view.h"

#include <stdint.h>
#include <string.h>

#include "base/contract.h"
#include "base/json.h"
#include "base/page.h"

enum { REAL_DIGITS = 6 };

struct member {
    const char *name;
    enum { IS_TEXT, IS_WHOLE, IS_REAL } kind;
};

/* NULL: it is of another type. */
static struct json *member_of(const struct json *object, const struct member *member)
{
    const struct json *value = json_get(object, member->name);
    if (member->kind == IS_TEXT && json_is_string(value))
        return json_new_text_cut(json_as_text(value), DETAIL_VIEW_TEXT_BYTES);
    if (member->kind == IS_WHOLE && json_is_integer(value))
        return json_new_integer(json_as_integer(value));
    if (member->kind == IS_REAL && json_is_number(value))
        return json_new_real(json_as_number(value), REAL_DIGITS);
    return NULL;
}

static struct json *members_of(const struct json *object, const struct member *members)
{
    struct json *view = json_new_object();
    for (; json_is_object(object) && members->name; members++)
        json_set(view, members->name, member_of(object, members));
    return view;
}

static struct json *rank_of(const struct json *rank)
{
    static const struct member members[] = {
        {PROGRESS_RANK, IS_WHOLE},
        {"host", IS_TEXT},
        {"pod", IS_TEXT},
        {PROGRESS_RANK_STATE, IS_TEXT},
        {PROGRESS_RANK_PHASE, IS_TEXT},
        {"step", IS_WHOLE},
        {"op", IS_TEXT},
        {"unit", IS_TEXT},
        {PROGRESS_RANK_COMPUTE, IS_REAL},
        {NULL, IS_TEXT},
    };
    return members_of(rank, members);
}

static struct json *run_of(const struct json *run)
{
    static const struct member members[] = {
        {"model", IS_TEXT},     {"parameters", IS_WHOLE}, {"strategy", IS_TEXT},
        {"precision", IS_TEXT}, {"device", IS_TEXT},      {NULL, IS_TEXT},
    };
    return members_of(run, members);
}

static struct json *seconds_of(const struct json *seconds)
{
    return json_is_number(seconds) ? json_new_real(json_as_number(seconds), REAL_DIGITS) : NULL;
}

static struct json *use_of(const struct json *use)
{
    static const struct member members[] = {
        {"current", IS_WHOLE}, {"peak", IS_WHOLE}, {NULL, IS_TEXT}};
    return json_is_object(use) ? members_of(use, members) : NULL;
}

/* An object whose names are the agent's. */
static struct json *named_of(const struct json *object,
                             struct json *(*view_of)(const struct json *value))
{
    struct json *view = json_new_object();
    const struct json *value;
    if (json_is_object(object))
        json_each_member(value, object) {
            if (json_object_count(view) < DETAIL_VIEW_NAMES_MAX &&
                strlen(json_key(value)) <= DETAIL_VIEW_NAME_BYTES)
                json_set(view, json_key(value), view_of(value));
        }
    return view;
}

static void set_ranks(struct json *view, const struct json *detail)
{
    const struct json *ranks = json_get(detail, TRAINING_DETAIL_RANKS),
                      *told = json_get(detail, TRAINING_DETAIL_RANKS_HIDDEN), *rank;
    int64_t hidden = json_is_integer(told) && json_as_integer(told) > 0 ? json_as_integer(told) : 0;
    if (!json_is_array(ranks))
        return;
    struct json *shown = json_new_array();
    json_each_item(rank, ranks) {
        if (json_array_count(shown) < PAGE_RANKS_MAX)
            json_append(shown, rank_of(rank));
        else if (hidden < INT64_MAX)
            hidden++;
    }
    json_set(view, TRAINING_DETAIL_RANKS, shown);
    if (hidden > 0)
        json_set_integer(view, TRAINING_DETAIL_RANKS_HIDDEN, hidden);
}

/* Takes the value, and leaves out what is empty. */
static void set_known(struct json *view, const char *name, struct json *value)
{
    if (json_object_count(value) > 0)
        json_set(view, name, value);
    else
        json_free(value);
}

struct json *detail_view(const char *text, size_t bytes)
{
    struct error err;
    struct json *detail = json_parse(text, bytes, JSON_STRICT, &err);
    struct json *view = json_new_object();
    if (json_is_object(detail)) {
        set_ranks(view, detail);
        set_known(view, TRAINING_DETAIL_PHASES,
                  named_of(json_get(detail, TRAINING_DETAIL_PHASES), seconds_of));
        set_known(view, TRAINING_DETAIL_MEMORY,
                  named_of(json_get(detail, TRAINING_DETAIL_MEMORY), use_of));
        set_known(view, TRAINING_DETAIL_RUN, run_of(json_get(detail, TRAINING_DETAIL_RUN)));
    }
    json_free(detail);
    if (json_object_count(view) > 0)
        return view;
    json_free(view);
    return NULL;
}
