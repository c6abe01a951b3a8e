#include "tests/cli/monitoring.h"

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/yaml.h"
#include "tests/support.h"

enum { MAX_BYTES = 256 << 10 };

const char *const monitoring_dashboards[] = {
    MONITORING_FOLDER "dashboards/training.json",
    MONITORING_FOLDER "dashboards/operator.json",
    MONITORING_FOLDER "dashboards/gpus.json",
    NULL,
};

struct json *monitoring_document(const char *path)
{
    struct error err;
    auto_free char *text = NULL;
    size_t bytes;
    struct json *list;
    assert_ok(file_read(path, MAX_BYTES, &text, &bytes, &err), &err);
    assert_ok(yaml_parse(text, bytes, path, &list, &err), &err);
    struct json *first = json_take_at(list, 0);
    json_free(list);
    return first;
}

const char *monitoring_text(const struct json *object, const char *key)
{
    const char *text = json_as_text(json_get(object, key));
    if (!text)
        fail_msg("no %s", key);
    return text;
}

int64_t monitoring_whole(const struct json *object, const char *key)
{
    if (!json_is_integer(json_get(object, key)))
        fail_msg("no %s", key);
    return json_as_integer(json_get(object, key));
}
