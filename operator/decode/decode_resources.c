#include "operator/decode/decode_resources.h"

#include "base/json.h"
#include "base/mem.h"
#include "operator/job/quantity.h"

/* A quantity may be written as a number as well. */
static const char *as_text(const struct json *value, struct arena *arena)
{
    if (json_is_string(value))
        return json_as_text(value);
    if (json_is_integer(value))
        return json_number_text(value);
    if (json_is_real(value))
        return arena_printf(arena, "%.15g", json_as_number(value));
    return "";
}

void decode_quantities(struct json_reader *reader, const struct json *value, void *quantities)
{
    if (!json_is_object_here(reader, value))
        return;
    struct json *amount;
    json_each_member(amount, value) {
        const char *key = json_key(amount);
        size_t depth = json_enter(reader, "[%s]", key);
        int64_t milli;
        if (quantity_parse(as_text(amount, reader->arena), &milli))
            quantities_set(quantities, arena_strdup(reader->arena, key), milli, reader->arena);
        else
            json_problem(reader, "must be a quantity such as 2, 500m or 16Gi");
        json_leave(reader, depth);
    }
}

struct requirements {
    struct quantities requests;
    struct quantities limits;
};

static const struct json_field requirements_fields[] = {
    JSON_CUSTOM("requests", struct requirements, requests, decode_quantities),
    JSON_CUSTOM("limits", struct requirements, limits, decode_quantities),
    JSON_KNOWN("claims"),
    JSON_END,
};

void decode_resources(struct json_reader *reader, const struct json *value, void *requests)
{
    struct requirements found = {0};
    if (!json_is_object_here(reader, value))
        return;
    json_read(reader, value, requirements_fields, &found);
    json_note_unused(reader);
    /* As the API server's defaults: a request that is missing is its limit. */
    struct quantities all = found.limits;
    for (size_t i = 0; i < found.requests.count; i++)
        quantities_set(&all, found.requests.items[i].resource, found.requests.items[i].milli,
                       reader->arena);
    *(struct quantities *)requests = all;
}
