/* A remembered status field is a row of history_fields: each field has one, and each row is copied,
 * compared, written, read, missed when it is dropped and known to the CustomResourceDefinition. */
#include "operator/job/history_fields.h"
#include "tests/support.h"

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "operator/decode/decode_status.h"
#include "operator/job/history.h"
#include "operator/manifest/manifest.h"
#include "tests/operator/crd_fixture.h"

#include <stdlib.h>
#include <string.h>

#define TYPES_PATH "operator/job/types.h"

/* ---- each field has a row ---- */

static bool has_row(const struct history_field *fields, const char *member)
{
    for (const struct history_field *field = fields; field->member; field++)
        if (strcmp(field->member, member) == 0 ||
            (field->count && strcmp(field->count, member) == 0))
            return true;
    return false;
}

static void blank_comments(char *text)
{
    for (char *at = text, *end; (at = strstr(at, "/*")) && (end = strstr(at, "*/")); at = end)
        memset(at, ' ', (size_t)(end + 2 - at));
}

/* The name that a declaration, "bool *completed[REPLICA_TYPES]", ends with. */
static const char *declared_name(char *declaration)
{
    declaration[strcspn(declaration, "[")] = '\0';
    size_t length = strlen(declaration);
    while (length && strchr(" \n", declaration[length - 1]))
        declaration[--length] = '\0';
    const char *name = declaration + length;
    while (name > declaration && !strchr(" \n*", name[-1]))
        name--;
    return name;
}

/* Of a struct of types.h, by its text: C cannot name its own fields. */
static void check_rows(const char *head, const struct history_field *fields, size_t least)
{
    char *text;
    size_t bytes, count = 0;
    struct error err;
    assert_ok(file_read(TYPES_PATH, 1 << 20, &text, &bytes, &err), &err);
    char *at = strstr(text, head);
    assert_non_null(at);
    at += strlen(head);
    *strstr(at, "\n};") = '\0';
    blank_comments(at);
    for (char *declaration; (declaration = strsep(&at, ";"));) {
        const char *name = declared_name(declaration);
        if (!*name)
            continue;
        count++;
        if (!has_row(fields, name))
            fail_msg("%s %s of " TYPES_PATH " has no row in history_fields.c", head, name);
    }
    assert_true(count >= least);
    free(text);
}

static void each_field_has_a_row(void **state)
{
    (void)state;
    check_rows("struct history {", history_fields, 10);
    check_rows("struct replica_history {", replica_history_fields, 7);
}

/* ---- each row is followed ---- */

/* Gives the field of a row another value than 0. */
static void set_value(const struct history_field *field, void *owner, struct arena *arena)
{
    void *value = (char *)owner + field->offset;
    static const struct replica_history replica = {.type = REPLICA_WORKER, .index = 1, .uid = "u"};
    switch (field->kind) {
    case HISTORY_PRESENCE:
    case HISTORY_FLAG:
        *(bool *)value = true;
        break;
    case HISTORY_COUNT:
        *(int32_t *)value = 3;
        break;
    case HISTORY_TIME:
        *(int64_t *)value = 5000;
        break;
    case HISTORY_TEXT:
        *(const char **)value = "another";
        break;
    case HISTORY_TYPE:
        *(enum replica_type *)value = REPLICA_MASTER;
        break;
    case HISTORY_COUNTS:
        ((int32_t *)value)[REPLICA_WORKER] = 2;
        break;
    case HISTORY_INDICES:
        history_complete(owner, REPLICA_WORKER, 4, arena);
        break;
    case HISTORY_RECORDS:
        history_put(owner, replica, arena);
        break;
    case HISTORY_NODES:
        history_avoid(owner, "gpu-b.example", 7000, arena);
        history_avoid(owner, "gpu-a", 5000, arena);
        break;
    }
}

static struct history written_and_read(const struct history *history, struct arena *arena)
{
    const struct job job = {.name = "j", .namespace_ = "ns"};
    const struct job_status status = {.history = *history};
    struct json *object = manifest_status(&job, &status);
    struct job_status read = decode_status(object, arena);
    json_free(object);
    return read.history;
}

/* `changed` differs from `history` in the field of this row alone. */
static void check_change(const struct history_field *field, const struct history *history,
                         const struct history *changed, struct arena *arena)
{
    struct history copy = history_copy(changed, arena);
    struct history read = written_and_read(changed, arena);
    if (history_equal(history, changed))
        fail_msg("%s is not compared", field->member);
    if (!history_equal(&copy, changed))
        fail_msg("%s is not copied", field->member);
    if (field->name && !history_equal(&read, changed))
        fail_msg("%s is not written, or not read", field->member);
}

static void each_row_is_copied_compared_written_and_read(void **state)
{
    struct arena *arena = ((struct crd_fixture *)*state)->arena;
    for (const struct history_field *field = history_fields; field->member; field++) {
        struct history history = {.known = field->kind != HISTORY_PRESENCE}, changed = history;
        set_value(field, &changed, arena);
        check_change(field, &history, &changed, arena);
    }
    for (const struct history_field *field = replica_history_fields; field->member; field++) {
        struct replica_history replica = {.type = REPLICA_WORKER, .uid = "u"};
        struct history history = {.known = true}, changed = {.known = true};
        history_put(&history, replica, arena);
        set_value(field, &replica, arena);
        history_put(&changed, replica, arena);
        check_change(field, &history, &changed, arena);
    }
}

static void check_lost(const struct history *history, const char *drops, const char *in_record,
                       const char *name, struct arena *arena)
{
    const struct job job = {.name = "j", .namespace_ = "ns"};
    const struct job_status status = {.history = *history};
    struct json *object = manifest_status(&job, &status), *answer = json_get(object, "history");
    assert_null(manifest_lost_history(history, answer, arena));
    if (drops)
        json_remove(answer, drops);
    else
        json_remove(json_at(json_get(answer, "replicas"), 0), in_record);
    const char *lost = manifest_lost_history(history, answer, arena);
    if (!lost || strcmp(lost, name) != 0)
        fail_msg("the loss of %s is told as that of %s", name, lost ? lost : "nothing");
    json_free(object);
}

/* By a CustomResourceDefinition that does not name it. */
static void the_row_that_was_dropped_is_named(void **state)
{
    struct arena *arena = ((struct crd_fixture *)*state)->arena;
    for (const struct history_field *field = history_fields; field->member; field++) {
        struct history history = {.known = true};
        set_value(field, &history, arena);
        if (field->name)
            check_lost(&history, field->name, NULL, field->name, arena);
    }
    for (const struct history_field *field = replica_history_fields; field->member; field++) {
        struct replica_history replica = {.type = REPLICA_WORKER, .uid = "u"};
        struct history history = {.known = true};
        set_value(field, &replica, arena);
        history_put(&history, replica, arena);
        check_lost(&history, NULL, field->name, arena_printf(arena, "replicas.%s", field->name),
                   arena);
    }
    assert_string_equal(manifest_lost_history(&(struct history){.known = true}, NULL, arena),
                        "history");
}

/* Of a map, one entry. */
static void an_entry_that_was_dropped_is_told(void **state)
{
    struct arena *arena = ((struct crd_fixture *)*state)->arena;
    const struct history history = {.known = true, .formed = {1, 2}};
    const struct job job = {.name = "j", .namespace_ = "ns"};
    const struct job_status status = {.history = history};
    struct json *object = manifest_status(&job, &status), *answer = json_get(object, "history");
    json_remove(json_get(answer, "formed"), "Worker");
    assert_string_equal(manifest_lost_history(&history, answer, arena), "formed");
    json_free(object);
}

static void the_texts_of_a_copy_are_its_own(void **state)
{
    struct arena *arena = ((struct crd_fixture *)*state)->arena;
    struct history history = {.known = true};
    history_put(&history, (struct replica_history){.uid = "u"}, arena);
    struct history copy = history_copy(&history, arena);
    assert_string_equal(copy.replicas[0].uid, "u");
    assert_ptr_not_equal(copy.replicas[0].uid, history.replicas[0].uid);
}

/* However many nodes a job leaves, its status stays small. */
static void avoided_nodes_have_an_end(void **state)
{
    struct arena *arena = ((struct crd_fixture *)*state)->arena;
    struct history history = {.known = true};
    for (int i = 0; i <= HISTORY_NODES_MAX; i++)
        history_avoid(&history, arena_printf(arena, "n%d", (i + 5) % 7 * 100 + i), 1000 + i, arena);
    assert_int_equal(history.avoided_count, HISTORY_NODES_MAX);
    assert_null(history_avoided(&history, "n500")); /* the oldest */
    assert_int_equal(history_avoided(&history, "n601")->since_ms, 1001);
    for (size_t i = 1; i < history.avoided_count; i++)
        assert_true(strcmp(history.avoided[i - 1].name, history.avoided[i].name) < 0);
    history_stop_avoiding(&history, 1000 + HISTORY_NODES_MAX - 2);
    assert_string_equal(history_avoided_names(&history, arena), "n563,n664");
    history_stop_avoiding(&history, 1000 + HISTORY_NODES_MAX);
    assert_null(history_avoided_names(&history, arena));
}

#define HISTORY "status.history"

static void each_row_is_a_property_of_the_definition(void **state)
{
    struct crd_fixture *f = *state;
    const struct json *record = json_get(crd_fixture_schema_at(f, HISTORY ".replicas"), "items");
    for (const struct history_field *field = history_fields; field->member; field++) {
        const char *path = arena_printf(f->arena, HISTORY ".%s", field->name ? field->name : "");
        if (field->name && !crd_fixture_schema_at(f, path))
            fail_msg("%s is not in the CustomResourceDefinition", path);
    }
    for (const struct history_field *field = replica_history_fields; field->member; field++)
        if (!json_get(json_get(record, "properties"), field->name))
            fail_msg(HISTORY ".replicas[].%s is not in the CustomResourceDefinition", field->name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_field_has_a_row),
        cmocka_unit_test_setup_teardown(each_row_is_copied_compared_written_and_read,
                                        crd_fixture_open, crd_fixture_close),
        cmocka_unit_test_setup_teardown(the_row_that_was_dropped_is_named, crd_fixture_open,
                                        crd_fixture_close),
        cmocka_unit_test_setup_teardown(an_entry_that_was_dropped_is_told, crd_fixture_open,
                                        crd_fixture_close),
        cmocka_unit_test_setup_teardown(the_texts_of_a_copy_are_its_own, crd_fixture_open,
                                        crd_fixture_close),
        cmocka_unit_test_setup_teardown(avoided_nodes_have_an_end, crd_fixture_open,
                                        crd_fixture_close),
        cmocka_unit_test_setup_teardown(each_row_is_a_property_of_the_definition, crd_fixture_open,
                                        crd_fixture_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
