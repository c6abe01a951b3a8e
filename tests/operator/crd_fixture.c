#include "tests/operator/crd_fixture.h"

#include "base/mem.h"
#include "base/yaml.h"
#include "operator/decode/decode.h"
#include "tests/operator/schema.h"
#include "tests/support.h"

#include <jansson.h>
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
    json_decref(f->crd);
    free(f);
    return 0;
}

/* Both sides look at an object. */
void crd_fixture_look(struct crd_fixture *f, const json_t *object)
{
    lines_init(&f->by_schema, f->arena);
    lines_init(&f->by_code, f->arena);
    lines_init(&f->notes, f->arena);
    schema_check(f->crd, object, "", &f->by_schema);
    decode_job(object, 6, f->arena, &f->by_code, &f->notes);
}

json_t *crd_fixture_parse(const char *text)
{
    struct error err;
    json_t *documents;
    assert_ok(yaml_parse(text, strlen(text), "test", &documents, &err), &err);
    json_t *object = json_deep_copy(json_array_get(documents, 0));
    json_decref(documents);
    return object;
}

json_t *crd_fixture_job(struct crd_fixture *f, const char *name, const char *spec)
{
    return crd_fixture_parse(arena_printf(
        f->arena,
        "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: %s}, spec: {%s}}", name,
        spec));
}

json_t *crd_fixture_schema_at(struct crd_fixture *f, const char *path)
{
    json_t *at = f->crd;
    char *rest = arena_strdup(f->arena, path), *name;
    while ((name = strsep(&rest, ".")))
        at = json_object_get(json_object_get(at, "properties"), name);
    return at;
}

void crd_fixture_check(struct crd_fixture *f, const struct crd_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        json_t *object = crd_fixture_job(f, rows[i].name, rows[i].spec);
        crd_fixture_look(f, object);
        const enum crd_verdict verdict = rows[i].verdict;
        if ((f->by_schema.count > 0) != (verdict == REFUSED || verdict == REFUSED_BY_SCHEMA))
            fail_msg("row %zu: %s: the schema says: %s", i, rows[i].spec,
                     lines_join(&f->by_schema));
        if (verdict != REFUSED_BY_SCHEMA &&
            (f->by_code.count > 0) != (verdict == REFUSED || verdict == REFUSED_BY_CODE))
            fail_msg("row %zu: %s: the code says: %s", i, rows[i].spec, lines_join(&f->by_code));
        json_decref(object);
    }
}
