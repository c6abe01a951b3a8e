/* What commands read of a job. */
#include "cli/job_facts.h"

#include "base/json.h"
#include "base/mem.h"
#include "tests/support.h"

#include <string.h>

#define CREATED_MS INT64_C(1767225600000) /* 2026-01-01 */

static struct job_facts read_at(const char *status, int64_t age_s, struct arena *arena)
{
    struct error err;
    auto_free char *text = xasprintf(
        "{\"metadata\":{\"name\":\"j\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{"
        "\"pytorchReplicaSpecs\":{\"Worker\":{\"template\":{\"spec\":{\"containers\":[{\"name\":"
        "\"pytorch\",\"image\":\"i\"}]}}}}},\"status\":{%s}}",
        status);
    struct json *object = json_parse(text, strlen(text), JSON_STRICT, &err);
    assert_non_null(object);
    struct job_facts facts = job_facts_read(object, CREATED_MS + 1000 * age_s, arena);
    json_free(object);
    return facts;
}

/* An outage is seen while it goes on, though nothing of it is written. */
static void what_goes_on_counts(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    const char *status = "\"training\":{\"step\":7,\"secondsKind\":\"recovery\",\"seconds\":"
                         "{\"pending\":10,\"step\":90}}";
    struct job_facts facts = read_at(status, 150, arena);
    assert_int_equal(facts.goodput.ms[GOODPUT_RECOVERY], 50000);
    assert_int_equal(goodput_sum_ms(&facts.goodput), 150000);
    assert_true(goodput_ratio(&facts.goodput) == 0.6);
    facts = read_at("\"training\":{\"step\":7,\"seconds\":{\"step\":90}}", 150, arena);
    assert_int_equal(goodput_sum_ms(&facts.goodput), 90000); /* a process runs, and tells itself */
    facts = read_at("\"training\":{\"secondsKind\":\"pending\",\"seconds\":{}}", 150, arena);
    assert_false(facts.training.known);
    assert_int_equal(facts.goodput.ms[GOODPUT_PENDING], 150000);
}

/* As in kubectl's column. */
static void restarts_are_of_replicas_and_ranks(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct job_facts facts =
        read_at("\"restarts\":6,\"history\":{\"restarts\":1,\"rankRestarts\":5}", 1, arena);
    assert_int_equal(facts.restarts, 6);
    assert_int_equal(facts.rank_restarts, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_on_counts),
        cmocka_unit_test(restarts_are_of_replicas_and_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
