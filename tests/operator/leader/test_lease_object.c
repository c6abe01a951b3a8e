#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "operator/leader/lease_object.h"

#include <string.h>

static const char *const whole =
    "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
    "\"metadata\":{\"name\":\"l\",\"namespace\":\"n\",\"resourceVersion\":\"12\","
    "\"labels\":{\"a\":\"b\"}},"
    "\"spec\":{\"holderIdentity\":\"h\",\"leaseDurationSeconds\":15,\"leaseTransitions\":3,"
    "\"acquireTime\":\"2026-01-01T00:00:00.123456Z\",\"renewTime\":\"2026-01-01T00:00:02.000000Z\","
    "\"preferredHolder\":\"x\"}}";

static int read_text(const char *text, struct lease_record *ret_record, struct error *err)
{
    struct json *object = json_parse_text(text, JSON_STRICT, NULL);
    assert_non_null(object);
    int result = lease_object_read(object, ret_record, err);
    json_free(object);
    return result;
}

static void a_lease_is_read(void **state)
{
    (void)state;
    struct lease_record record;
    struct error err;
    assert_ok(read_text(whole, &record, &err), &err);
    assert_true(record.exists);
    assert_string_equal(record.holder, "h");
    assert_int_equal(record.duration_s, 15);
    assert_int_equal(record.transitions, 3);
    assert_string_equal(record.acquired, "2026-01-01T00:00:00.123456Z");
    assert_string_equal(record.renewed, "2026-01-01T00:00:02.000000Z");
    assert_string_equal(record.version, "12");
}

static void what_is_absent_is_empty(void **state)
{
    (void)state;
    struct lease_record record;
    struct error err;
    assert_ok(read_text("{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":null}", &record, &err),
              &err);
    assert_string_equal(record.holder, "");
    assert_int_equal(record.duration_s, 0);
    assert_string_equal(record.acquired, "");
}

static void what_does_not_fit_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } rows[] = {
        {"[]", "Lease: must be a mapping"},
        {"{}", "Lease: metadata.resourceVersion: missing"},
        {"{\"metadata\":{\"resourceVersion\":7}}", "Lease: metadata.resourceVersion: must be text"},
        {"{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"leaseDurationSeconds\":-1}}",
         "Lease: spec.leaseDurationSeconds"},
        {"{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"holderIdentity\":{}}}",
         "Lease: spec.holderIdentity: must be text"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct lease_record record;
        struct error err;
        assert_fails(read_text(rows[i].text, &record, &err), &err, ERR_INPUT, rows[i].part);
    }
}

/* What is written over `seen` (NULL: nothing), as text. */
static char *written_over(const char *seen_text)
{
    struct json *seen = seen_text ? json_parse_text(seen_text, JSON_STRICT, NULL) : NULL;
    const struct lease_record record = {.holder = "me",
                                        .duration_s = 15,
                                        .transitions = 4,
                                        .acquired = "A",
                                        .renewed = "R",
                                        .version = "12"};
    struct json *object = lease_object_write(seen, "n", "l", &record);
    char *text = json_print(object, JSON_SORTED);
    json_free(object);
    json_free(seen);
    return text;
}

#define SPEC                                                                                       \
    "\"spec\":{\"acquireTime\":\"A\",\"holderIdentity\":\"me\",\"leaseDurationSeconds\":15,"       \
    "\"leaseTransitions\":4,"

static void a_new_lease_is_written(void **state)
{
    (void)state;
    auto_free char *text = written_over(NULL);
    assert_string_equal(text, "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
                              "\"metadata\":{\"name\":\"l\",\"namespace\":\"n\"}," SPEC
                              "\"renewTime\":\"R\"}}");
}

static void what_others_wrote_stays(void **state)
{
    (void)state;
    auto_free char *text = written_over(whole);
    assert_string_equal(text, "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
                              "\"metadata\":{\"labels\":{\"a\":\"b\"},\"name\":\"l\","
                              "\"namespace\":\"n\",\"resourceVersion\":\"12\"}," SPEC
                              "\"preferredHolder\":\"x\",\"renewTime\":\"R\"}}");
}

static void a_lease_without_spec_gets_one(void **state)
{
    (void)state;
    auto_free char *text = written_over("{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":null}");
    assert_string_equal(text,
                        "{\"metadata\":{\"resourceVersion\":\"12\"}," SPEC "\"renewTime\":\"R\"}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lease_is_read),
        cmocka_unit_test(what_is_absent_is_empty),
        cmocka_unit_test(what_does_not_fit_is_named),
        cmocka_unit_test(a_new_lease_is_written),
        cmocka_unit_test(what_others_wrote_stays),
        cmocka_unit_test(a_lease_without_spec_gets_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
