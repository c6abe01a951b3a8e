#include "tests/operator/histories/parsed.h"

#include "base/json.h"
#include "base/mem.h"
#include "tests/operator/histories/region.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

enum { PLACES = 1 << 12 };

static struct place {
    char *text;
    struct json *json;
} places[PLACES];

static void forget(struct place *place)
{
    free(place->text);
    json_free(place->json);
    *place = (struct place){0};
}

const struct json *parsed(const char *text, uint64_t hash, int version)
{
    struct place *place = &places[hash % PLACES];
    bool is_entered = region_is_entered();
    region_leave();
    if (!place->text || strcmp(place->text, text) != 0) {
        forget(place);
        place->text = xstrdup(text);
        place->json = json_parse_text(text, JSON_STRICT, NULL);
        assert_non_null(place->json);
    }
    json_set(json_get(place->json, "metadata"), "resourceVersion", json_new_textf("%d", version));
    if (is_entered)
        region_enter();
    return place->json;
}

void parsed_forget(void)
{
    for (int i = 0; i < PLACES; i++)
        forget(&places[i]);
}
