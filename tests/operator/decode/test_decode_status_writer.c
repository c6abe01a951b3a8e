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
#define FORGED(manager) "{manager: " manager ", time: '2099-01-01T00:00:00Z', " STATUS COUNTS "}"
#define FUTURE          FORGED("evil")
#define KNOWN           "history: {failures: 1}, "
#define BEFORE          "{" KNOWN "conditions: [1]}"
#define AFTER           "{" KNOWN "conditions: [2]}"
#define WITHOUT         "{conditions: [2]}"

struct row {
    const char *entries, *before, *after;
    const char *manager; /* of the other operator that wrote it; NULL: there is none */
};

/* entries_before: of the version before; NULL: it is of a list, whose reader makes null of them. */
static void check_row(size_t i, const struct row *row, const char *entries_before)
{
    struct json *object =
        object_from("{metadata: {managedFields: [%s]}, status: %s}", row->entries, row->after);
    auto_free char *list = entries_before ? xasprintf("[%s]", entries_before) : NULL;
    struct json *before = object_from("{metadata: {managedFields: %s}, status: %s}",
                                      list ? list : "null", row->before);
    auto_free char *known = decode_status_writers(before);
    struct status_writer writer;
    const char *manager = NULL;
    if (decode_status_writer(object, "us", known, &writer) &&
        decode_is_operators_write(&writer, known != NULL, json_get(before, "status"),
                                  json_get(object, "status")))
        manager = writer.manager;
    if ((manager != NULL) != (row->manager != NULL) ||
        (manager && strcmp(manager, row->manager) != 0))
        fail_msg("row %zu: %s, not %s", i, manager, row->manager);
    json_free(object);
    json_free(before);
}

/* Nobody had written before, so that ours and another's are both new. */
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
        {OURS ", {manager: kubectl-patch, " STATUS AT(11) COUNTS "}", BEFORE, AFTER, NULL},
        {OURS ", {manager: kubectl, " STATUS AT(11) COUNTS "}", BEFORE, WITHOUT, NULL},
        {OURS ", " THEIRS(11, COUNTS) ", {manager: kubectl-edit, " STATUS AT(12) COUNTS "}", BEFORE,
         AFTER, "manager"},
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
        check_row(i, &rows[i], "");
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
        /* ours is of before: the change is not ours, whatever time its entry has */
        {{OURS ", " THEIRS(11, COUNTS), BEFORE, AFTER, "manager"}, OURS},
        {{OURS ", " THEIRS(10, COUNTS), BEFORE, AFTER, "manager"}, OURS},
        {{FORGED("us") ", " THEIRS(11, COUNTS), BEFORE, AFTER, "manager"}, FORGED("us")},
        {{OURS ", " FORGED("us") ", " THEIRS(11, COUNTS), BEFORE, AFTER, "manager"},
         THEIRS(9, COUNTS) ", " OURS ", " FORGED("us")},
        /* It may have been there before. */
        {{OURS ", " THEIRS(11, COUNTS), BEFORE, AFTER, NULL}, NULL},
        {{OURS ", " FUTURE, BEFORE, AFTER, NULL}, NULL},
        {{OURS ", " THEIRS(11, COUNTS), BEFORE, WITHOUT, "manager"}, NULL},
        /* without ours we have written all the same: it was merged as the oldest, or taken away */
        {{THEIRS(11, COUNTS), BEFORE, AFTER, NULL}, NULL},
        {{FUTURE, "null", AFTER, NULL}, NULL},
        {{"{manager: ancient-changes, " AT(10) STATUS COUNTS "}, " FUTURE, BEFORE, AFTER, NULL},
         NULL},
        {{FUTURE, BEFORE, WITHOUT, "evil"}, NULL},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        check_row(i, &rows[i].row, rows[i].entries_before);
}

/* Our entry, so many of others who write conditions, and a last one. */
static void add_entries(struct str *entries, int others, const char *last)
{
    str_add(entries, OURS);
    for (int i = 0; i < others; i++)
        str_printf(entries, ", {manager: m%d, " STATUS AT(9) CONDITIONS "}", i);
    str_printf(entries, ", %s", last);
}

/* With many, our write may take one away, and another would look new if some were left out. */
static void many_entries_tell_nothing(void **state)
{
    (void)state;
    static const struct {
        int others_before, others;
        const char *last_before, *last, *manager;
    } rows[] = {
        {30, 30, "", THEIRS(11, COUNTS), "manager"}, /* 32 with ours */
        {30, 31, "", THEIRS(11, COUNTS), NULL},      /* one more, and it is not looked for */
        {31, 30, FUTURE, FUTURE, NULL},              /* our write takes one away */
        {32, 30, FUTURE, FUTURE, NULL},
        {1000, 1, FUTURE, FUTURE, NULL},
        {1000, 1000, FUTURE, FUTURE, NULL},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct str before, after;
        str_init(&before, 1 << 20);
        str_init(&after, 1 << 20);
        add_entries(&before, rows[i].others_before, rows[i].last_before);
        add_entries(&after, rows[i].others, rows[i].last);
        const struct row row = {str_text(&after), BEFORE, AFTER, rows[i].manager};
        check_row(i, &row, str_text(&before));
        str_free(&before);
        str_free(&after);
    }
}

static void an_object_without_managed_fields_is_nobodys(void **state)
{
    (void)state;
    static const char *const texts[] = {"{}", "{metadata: {managedFields: null}}", "{metadata: 1}"};
    for (size_t i = 0; i < array_length(texts); i++) {
        struct json *object = object_from("%s", texts[i]);
        struct status_writer writer;
        assert_false(decode_status_writer(object, "us", "", &writer));
        assert_null(decode_status_writers(object)); /* it is not known that there are none */
        json_free(object);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operators_write_is_told_from_others),
        cmocka_unit_test(what_was_there_before_is_no_write),
        cmocka_unit_test(many_entries_tell_nothing),
        cmocka_unit_test(an_object_without_managed_fields_is_nobodys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
