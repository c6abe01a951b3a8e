/* Whose write a status is, by what API servers tell of it. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/decode/decode_status_writer.h"
#include "tests/operator/cache/objects.h"

#include <stdlib.h>
#include <string.h>

#define COUNTS     "fieldsV1: {'f:status': {'f:conditions': {}, 'f:replicaStatuses': {'.': {}}}}"
#define CONDITIONS "fieldsV1: {'f:status': {'f:conditions': {}}}"
#define SPEC       "fieldsV1: {'f:spec': {'f:runPolicy': {}}}"
#define AT(s)      "time: '2026-01-01T00:00:" #s "Z', "
#define STATUS     "subresource: status, "
#define OURS       "{manager: us, " STATUS AT(10) COUNTS "}"
/* The training operator's image runs /manager. */
#define THEIRS(s, what) "{manager: manager, " STATUS AT(s) what "}"
#define FUTURE          "{manager: evil, time: '2099-01-01T00:00:00Z', " STATUS COUNTS "}"
#define KNOWN           "history: {failures: 1}, "
#define BEFORE          "{" KNOWN "conditions: [1]}"
#define AFTER           "{" KNOWN "conditions: [2]}"
#define WITHOUT         "{conditions: [2]}"

struct row {
    const char *entries, *before, *after;
    const char *manager; /* of the other operator that wrote it; NULL: there is none */
};

/* entries_before: of the version before; NULL: they were not seen. */
static void check_row(size_t i, const struct row *row, const char *entries_before)
{
    struct json *object =
        object_from("{metadata: {managedFields: [%s]}, status: %s}", row->entries, row->after);
    struct json *before = object_from("{metadata: {managedFields: [%s]}, status: %s}",
                                      entries_before ? entries_before : "", row->before);
    auto_free char *known = entries_before ? decode_status_writers(before, "us") : NULL;
    struct status_writer writer;
    const char *manager = NULL;
    if (decode_status_writer(object, "us", known, &writer) &&
        decode_is_operators_write(&writer, entries_before != NULL, json_get(before, "status"),
                                  json_get(object, "status")))
        manager = writer.manager;
    if ((manager != NULL) != (row->manager != NULL) ||
        (manager && strcmp(manager, row->manager) != 0))
        fail_msg("row %zu: %s, not %s", i, manager, row->manager);
    json_free(object);
    json_free(before);
}

static void an_operators_write_is_told_from_others(void **state)
{
    (void)state;
    static const struct row rows[] = {
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
    for (size_t i = 0; i < array_length(rows); i++)
        check_row(i, &rows[i], OURS);
}

/* Whoever may update a job puts there what he likes, but only before the status changes. */
static void what_was_there_before_is_no_write(void **state)
{
    (void)state;
    static const struct {
        struct row row;
        const char *entries_before;
    } rows[] = {
        /* It was there before: whoever may update the job put it there, and the status is ours. */
        {{OURS ", " THEIRS(11, COUNTS), BEFORE, AFTER, NULL}, THEIRS(11, COUNTS)},
        {{THEIRS(11, COUNTS), BEFORE, AFTER, NULL}, THEIRS(11, COUNTS)},
        {{OURS ", " THEIRS(11, COUNTS), BEFORE, WITHOUT, NULL}, THEIRS(11, COUNTS)},
        {{OURS ", " FUTURE, BEFORE, AFTER, NULL}, THEIRS(11, COUNTS) ", " FUTURE},
        {{OURS ", " FUTURE ", " THEIRS(11, COUNTS), BEFORE, AFTER, "manager"}, FUTURE},
        {{OURS ", " THEIRS(12, COUNTS), BEFORE, AFTER, "manager"}, THEIRS(11, COUNTS)},
        /* another one, whose name ends like it */
        {{OURS ", " THEIRS(11, COUNTS), BEFORE, AFTER, "manager"},
         "{manager: \"a manager\", " STATUS AT(11) COUNTS "}"},
        /* the API server's own summary of the oldest entries, made while we write */
        {{OURS ", {manager: ancient-changes, " AT(11) COUNTS "}", BEFORE, AFTER, NULL}, FUTURE},
        /* It may have been there before. */
        {{OURS ", " THEIRS(11, COUNTS), BEFORE, AFTER, NULL}, NULL},
        {{OURS ", " FUTURE, BEFORE, AFTER, NULL}, NULL},
        {{OURS ", " THEIRS(11, COUNTS), BEFORE, WITHOUT, "manager"}, NULL},
        {{THEIRS(11, COUNTS), BEFORE, AFTER, "manager"}, NULL},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        check_row(i, &rows[i].row, rows[i].entries_before);
}

/* However many entries somebody has put there. */
static void of_many_entries_few_are_kept(void **state)
{
    (void)state;
    struct str entries;
    str_init(&entries, 1 << 20);
    for (int i = 0; i < 1000; i++)
        str_printf(&entries, "{manager: m%d, " STATUS AT(11) COUNTS "}, ", i);
    struct json *object = object_from("{metadata: {managedFields: [%s]}}", str_text(&entries));
    auto_free char *known = decode_status_writers(object, "us");
    assert_in_range(strlen(known), 1, 1000);
    struct status_writer writer;
    assert_false(decode_status_writer(object, "us", known, &writer));
    json_free(object);
    str_free(&entries);
}

static void an_object_without_managed_fields_is_nobodys(void **state)
{
    (void)state;
    static const char *const texts[] = {"{}", "{metadata: {managedFields: null}}", "{metadata: 1}"};
    for (size_t i = 0; i < array_length(texts); i++) {
        struct json *object = object_from("%s", texts[i]);
        struct status_writer writer;
        assert_false(decode_status_writer(object, "us", "", &writer));
        json_free(object);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operators_write_is_told_from_others),
        cmocka_unit_test(what_was_there_before_is_no_write),
        cmocka_unit_test(of_many_entries_few_are_kept),
        cmocka_unit_test(an_object_without_managed_fields_is_nobodys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
