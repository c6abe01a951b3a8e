/* Whose write a status is, by what API servers tell of it. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "operator/decode/decode_status_writer.h"
#include "tests/operator/cache/objects.h"

#include <string.h>

#define COUNTS     "fieldsV1: {'f:status': {'f:conditions': {}, 'f:replicaStatuses': {'.': {}}}}"
#define CONDITIONS "fieldsV1: {'f:status': {'f:conditions': {}}}"
#define SPEC       "fieldsV1: {'f:spec': {'f:runPolicy': {}}}"
#define AT(s)      "time: '2026-01-01T00:00:" #s "Z', "
#define STATUS     "subresource: status, "
#define OURS       "{manager: us, " STATUS AT(10) COUNTS "}"
/* The training operator's image runs /manager. */
#define THEIRS(s, what) "{manager: manager, " STATUS AT(s) what "}"
#define KNOWN           "history: {failures: 1}, "
#define BEFORE          "{" KNOWN "conditions: [1]}"
#define AFTER           "{" KNOWN "conditions: [2]}"
#define WITHOUT         "{conditions: [2]}"

static void an_operators_write_is_told_from_others(void **state)
{
    (void)state;
    static const struct {
        const char *entries, *before, *after;
        const char *manager; /* of the other operator that wrote it; NULL: there is none */
    } rows[] = {
        {OURS ", " THEIRS(11, COUNTS), BEFORE, AFTER, "manager"},
        {THEIRS(11, COUNTS) ", " OURS, BEFORE, AFTER, "manager"},
        {THEIRS(11, COUNTS), "null", AFTER, "manager"},       /* we never wrote this job */
        {OURS ", " THEIRS(11, COUNTS), BEFORE, BEFORE, NULL}, /* the spec or a label changed */
        {OURS ", " THEIRS(9, COUNTS), BEFORE, AFTER, NULL},   /* of before we took over */
        {OURS, BEFORE, AFTER, NULL},
        {"", BEFORE, AFTER, NULL},
        /* within one second, only what we never do tells: to drop the history */
        {OURS ", " THEIRS(10, COUNTS), BEFORE, AFTER, NULL},
        {OURS ", " THEIRS(10, COUNTS), BEFORE, WITHOUT, "manager"},
        {OURS ", " THEIRS(9, COUNTS), BEFORE, WITHOUT, NULL}, /* the CRD dropped it from ours */
        {OURS, BEFORE, WITHOUT, NULL},
        /* what we counted before it is not its write: its conditions are */
        {OURS ", " THEIRS(11, CONDITIONS), BEFORE, WITHOUT, "manager"},
        /* a tool parks a condition, a person edits one */
        {OURS ", " THEIRS(11, CONDITIONS), BEFORE, AFTER, NULL},
        {OURS ", {manager: kubectl-edit, " STATUS AT(11) CONDITIONS "}", BEFORE, AFTER, NULL},
        /* Kubernetes before 1.22 tells no subresource */
        {"{manager: us, " AT(10) COUNTS "}, {manager: manager, " AT(11) COUNTS "}", BEFORE, AFTER,
         "manager"},
        {"{manager: us, " AT(10) COUNTS "}, {manager: kubectl, " AT(11) SPEC "}", BEFORE, AFTER,
         NULL},
        {OURS ", {manager: hpa, subresource: scale, " AT(11) COUNTS "}", BEFORE, AFTER, NULL},
        /* the newest of several */
        {OURS ", " THEIRS(9, COUNTS) ", {manager: fork, " STATUS AT(12) COUNTS "}", BEFORE, AFTER,
         "fork"},
        /* what is malformed is nobody's */
        {"{manager: 1, " STATUS AT(11) COUNTS "}, {manager: m, " STATUS COUNTS "}, {manager: m, "
                                              "time: soon, " COUNTS
                                              "}, 7, {manager: m, " AT(11) "fieldsV1: 7}",
         BEFORE, AFTER, NULL},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct json *object = object_from("{metadata: {managedFields: [%s]}, status: %s}",
                                          rows[i].entries, rows[i].after);
        struct json *before = object_from("{status: %s}", rows[i].before);
        struct status_writer writer;
        const char *manager = NULL;
        if (decode_status_writer(object, "us", &writer) &&
            decode_is_operators_write(&writer, json_get(before, "status"),
                                      json_get(object, "status")))
            manager = writer.manager;
        if ((manager != NULL) != (rows[i].manager != NULL) ||
            (manager && strcmp(manager, rows[i].manager) != 0))
            fail_msg("row %zu: %s, not %s", i, manager, rows[i].manager);
        json_free(object);
        json_free(before);
    }
}

static void an_object_without_managed_fields_is_nobodys(void **state)
{
    (void)state;
    static const char *const texts[] = {"{}", "{metadata: {managedFields: null}}", "{metadata: 1}"};
    for (size_t i = 0; i < array_length(texts); i++) {
        struct json *object = object_from("%s", texts[i]);
        struct status_writer writer;
        assert_false(decode_status_writer(object, "us", &writer));
        json_free(object);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operators_write_is_told_from_others),
        cmocka_unit_test(an_object_without_managed_fields_is_nobodys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
