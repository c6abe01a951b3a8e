#include "tests/operator/crd_fixture.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/yaml.h"
#include "operator/decode/decode.h"
#include "tests/operator/schema.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

int crd_fixture_open(void **state)
{
    struct crd_fixture *f = xcalloc(1, sizeof *f);
    f->arena = arena_open();
    f->crd = schema_of_crd(CRD);
    *state = f;
    return 0;
}

int crd_fixture_close(void **state)
{
    struct crd_fixture *f = *state;
    arena_close(f->arena);
    json_free(f->crd);
    free(f);
    return 0;
}

/* Both sides look at an object. */
void crd_fixture_look(struct crd_fixture *f, const struct json *object)
{
    lines_init(&f->by_schema, f->arena);
    lines_init(&f->by_code, f->arena);
    lines_init(&f->notes, f->arena);
    schema_check(f->crd, object, "", &f->by_schema);
    decode_job(object, 6, f->arena, &f->by_code, &f->notes);
}

struct json *crd_fixture_parse(const char *text)
{
    struct error err;
    struct json *documents;
    assert_ok(yaml_parse(text, strlen(text), "test", &documents, &err), &err);
    struct json *object = json_clone(json_at(documents, 0));
    json_free(documents);
    return object;
}

struct json *crd_fixture_job(struct crd_fixture *f, const char *name, const char *spec)
{
    return crd_fixture_parse(arena_printf(
        f->arena,
        "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: %s}, spec: {%s}}", name,
        spec));
}

struct json *crd_fixture_schema_at(struct crd_fixture *f, const char *path)
{
    struct json *at = f->crd;
    char *rest = arena_strdup(f->arena, path), *name;
    while ((name = strsep(&rest, ".")))
        at = json_get(json_get(at, "properties"), name);
    return at;
}

void crd_fixture_check(struct crd_fixture *f, const struct crd_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct json *object = crd_fixture_job(f, rows[i].name, rows[i].spec);
        crd_fixture_look(f, object);
        const enum crd_verdict verdict = rows[i].verdict;
        if ((f->by_schema.count > 0) != (verdict == REFUSED || verdict == REFUSED_BY_SCHEMA))
            fail_msg("row %zu: %s: the schema says: %s", i, rows[i].spec,
                     lines_join(&f->by_schema));
        if (verdict != REFUSED_BY_SCHEMA &&
            (f->by_code.count > 0) != (verdict == REFUSED || verdict == REFUSED_BY_CODE))
            fail_msg("row %zu: %s: the code says: %s", i, rows[i].spec, lines_join(&f->by_code));
        json_free(object);
    }
}
