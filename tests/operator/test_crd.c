/* The CustomResourceDefinition against the code: what the one refuses the other refuses, and
 * nothing that the operator reads or writes is dropped on the way to the API server and back. */
#include "tests/support.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/yaml.h"
#include "operator/decode/decode.h"
#include "operator/job/history.h"
#include "operator/job/job_status.h"
#include "operator/job/names.h"
#include "operator/manifest/manifest.h"
#include "tests/operator/crd_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WITHOUT_RULES "deploy/before-1.23/crd/without_rules.yaml"
#define MAX_BYTES     (64 << 10)

/* ---- every limit and every word of the schema, one by one ---- */

/* The whole object around one value: a path such as "spec.runPolicy.suspend" is laid over a job
 * that is right. */
static struct json *job_with(struct crd_fixture *f, const char *path, struct json *value)
{
    struct json *object = crd_fixture_job(f, "j", BOTH), *at = object;
    char *copy = arena_strdup(f->arena, path), *save = NULL;
    char *key = strtok_r(copy, ".", &save), *next;
    while ((next = strtok_r(NULL, ".", &save))) {
        if (!json_get(at, key))
            json_set(at, key, json_new_object());
        at = json_get(at, key);
        key = next;
    }
    json_set(at, key, value);
    return object;
}

/* Whether decode has something to say about exactly this field. */
static bool is_named(const struct lines *lines, const char *path)
{
    const char *last = strrchr(path, '.') + 1;
    for (size_t i = 0; i < lines->count; i++) {
        size_t length = strcspn(lines->items[i], ": ");
        if (length >= strlen(last) &&
            strncmp(lines->items[i] + length - strlen(last), last, strlen(last)) == 0)
            return true;
    }
    return false;
}

static void code_says(struct crd_fixture *f, const char *path, struct json *value, bool right)
{
    auto_free char *text = json_print(value, JSON_COMPACT);
    struct json *object = job_with(f, path, value);
    crd_fixture_look(f, object);
    if (is_named(&f->by_code, path) == right)
        fail_msg("%s: %s: the schema %s it, the code says: %s", path, text,
                 right ? "takes" : "refuses", f->by_code.count ? f->by_code.items[0] : "nothing");
    json_free(object);
}

static bool has_unset(const struct json *words)
{
    const char *last = json_as_text(json_at(words, json_array_count(words) - 1));
    return last && !*last;
}

/* The code names the words it knows; the schema has as many, but for the "" at its end, which typed
 * clients write for what is not set, and the code knows each. */
static void compare_words(struct crd_fixture *f, const char *path, const struct json *words)
{
    code_says(f, path, json_new_text("Odd"), false);
    size_t quotes = 0;
    for (const char *c = strstr(f->by_code.items[0], "values: "); *c; c++)
        quotes += *c == '"';
    assert_int_equal(json_array_count(words), quotes / 2 + (has_unset(words) ? 1 : 0));
    for (size_t i = 0; i < json_array_count(words); i++)
        code_says(f, path, json_clone(json_at(words, i)), true);
}

static bool is_integer(const struct json *schema)
{
    const char *type = json_as_text(json_get(schema, "type"));
    return type && strcmp(type, "integer") == 0;
}

/* Where the schema has a limit the code has the same, and where it has none neither
 * has the code. */
static void compare_limits(struct crd_fixture *f, const char *path, const struct json *schema)
{
    const struct json *least = json_get(schema, "minimum");
    const struct json *most = json_get(schema, "maximum");
    int64_t low = least ? json_as_integer(least) : -1000000;
    int64_t high = most ? json_as_integer(most) : INT32_MAX;
    code_says(f, path, json_new_integer(low), true);
    code_says(f, path, json_new_integer(high), true);
    if (least)
        code_says(f, path, json_new_integer(low - 1), false);
    if (most)
        code_says(f, path, json_new_integer(high + 1), false);
}

/* Walks down to each field of the spec; pod templates are core/v1's. Counts them. */
static int compare(struct crd_fixture *f, const char *path, const struct json *schema)
{
    const struct json *field;
    int count = 1;
    if (json_get(schema, "enum"))
        compare_words(f, path, json_get(schema, "enum"));
    if (is_integer(schema))
        compare_limits(f, path, schema);
    json_each_member(field, json_get(schema, "properties")) {
        const char *name = json_key(field);
        if (strcmp(name, "template") != 0)
            count += compare(f, arena_printf(f->arena, "%s.%s", path, name), field);
    }
    return count;
}

static void words_and_limits_are_those_of_the_code(void **state)
{
    struct crd_fixture *f = *state;
    const struct json *properties = json_get(f->crd, "properties");
    assert_true(compare(f, "spec", json_get(properties, "spec")) > 30);
}

/* ---- whole objects ---- */

#define TARGET(inside)                                                                             \
    BOTH ", elasticPolicy: {metrics: [{type: External, external: {metric: {name: queued, "         \
         "selector: {matchLabels: {a: b}}}, target: {" inside "}}}]}"

static const struct crd_row rows[] = {
    {"j", BOTH, TAKEN},
    {"j", "pytorchReplicaSpecs: {" WORKER "}", TAKEN},
    {"j", BOTH ", backoffLimit: -1, nprocPerNode: '12'", TAKEN},
    {"j", BOTH ", nprocPerNode: auto", TAKEN},
    {"j", BOTH ", nprocPerNode: '0'", REFUSED},
    {"j", BOTH ", nprocPerNode: tpu", REFUSED},
    {"j", BOTH ", nprocPerNode: 4", REFUSED}, /* a number, not text */
    {"j", BOTH ", elasticPolicy: {rdzvConf: [{key: a, value: b}], metrics: [{type: Resource}]}",
     TAKEN},
    {"j", BOTH ", elasticPolicy: {shrinkAfterSeconds: 0}", TAKEN},
    {"j", BOTH ", elasticPolicy: {shrinkAfterSeconds: -1}", REFUSED},
    {"j", BOTH ", elasticPolicy: {shrinkAfterSeconds: 30s}", REFUSED},
    {"j", BOTH ", elasticPolicy: {shrinkAfterSeconds: 1000001}", REFUSED},
    {"j", BOTH ", elasticPolicy: {rdzvConf: [{key: a}]}", TAKEN},
    {"j", BOTH ", elasticPolicy: {rdzvConf: [{value: a}]}", REFUSED},
    {"j", BOTH ", nprocPerNode: '', runPolicy: {cleanPodPolicy: '', restartScope: ''}", TAKEN},
    {"j", BOTH ", nprocPerNode: '', elasticPolicy: {nProcPerNode: 2}", TAKEN},
    {"j", BOTH ", nprocPerNode: ' 4'", REFUSED},
    {"j", BOTH ", nprocPerNode: many", REFUSED},
    {"j", "pytorchReplicaSpecs: {Worker: {restartPolicy: '', template: " POD "}}", TAKEN},
    {"j", BOTH ", elasticPolicy: {metrics: 1}", REFUSED},
    {"j", BOTH ", elasticPolicy: {metrics: [{}]}", REFUSED_BY_SCHEMA},
    {"j", TARGET("type: Utilization, averageUtilization: 80"), TAKEN},
    {"j", TARGET("type: AverageValue, averageValue: 500m"), TAKEN},
    {"j", TARGET("type: AverageValue, averageValue: 3"), TAKEN},
    {"j", TARGET("type: AverageValue, averageValue: lots"), REFUSED_BY_SCHEMA},
    {"j", TARGET("type: Utilization, averageUtilisation: 80"), REFUSED_BY_SCHEMA},
    {"j", TARGET("averageUtilization: 80"), REFUSED_BY_SCHEMA},
    {"j", BOTH ", elasticPolicy: {minReplicas: 2, maxReplicas: 1}", REFUSED_BY_CODE},
    {"j", BOTH ", elasticPolicy: {nProcPerNode: 2}, nprocPerNode: auto", REFUSED_BY_CODE},
    {"j", "elasticPolicy: {}, pytorchReplicaSpecs: {" MASTER "}", REFUSED_BY_CODE},
    {"j", BOTH ", runPolicy: {suspend: 'yes'}", REFUSED},
    {"j", "pytorchReplicaSpecs: {}", REFUSED},
    {"j", "runPolicy: {}", REFUSED},
    {"j", "pytorchReplicaSpecs: {Chief: {template: " POD "}, " WORKER "}", REFUSED},
    {"j", "pytorchReplicaSpecs: {Master: {template: " POD "}}", REFUSED}, /* must say 1 */
    {"j", "pytorchReplicaSpecs: {Worker: {replicas: 2}}", REFUSED},
    {"j", "pytorchReplicaSpecs: {Worker: {template: {spec: {}}}}", REFUSED},
    {"j", "pytorchReplicaSpecs: {Worker: {template: {spec: {containers: []}}}}", REFUSED},
    {"j", "pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch}]}}}}",
     REFUSED},
    {"j", "pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{image: i}]}}}}", REFUSED},
    {"j", "pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: a, image: i}]}}}}",
     REFUSED_BY_CODE},
    {"j",
     "pytorchReplicaSpecs: {Worker: {template: {spec: {volumes: [{name: v}], containers: "
     "[{name: pytorch, image: i, args: [a], env: [{name: A, value: '1'}, {name: B, valueFrom: "
     "{fieldRef: {fieldPath: x}}}], ports: [{containerPort: 80, name: p}]}]}}}}",
     TAKEN},
    {"j",
     "pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch, image: i, "
     "args: [1]}]}}}}",
     REFUSED},
    {"j",
     "pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch, image: i, "
     "env: [{name: A, value: 1}]}]}}}}",
     REFUSED},
    {"j",
     "pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch, image: i, "
     "env: [{value: a}]}]}}}}",
     REFUSED},
    {"j",
     "pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch, image: i, "
     "ports: [{containerPort: 65536}]}]}}}}",
     REFUSED},
    {"j",
     "pytorchReplicaSpecs: {Worker: {template: {spec: {initContainers: [{name: a}], containers: "
     "[{name: pytorch, image: i}]}}}}",
     REFUSED},
    {"0-test", BOTH, REFUSED},
    {"a.b", BOTH, REFUSED},
    {"a-", BOTH, REFUSED},
    {"a2345678901234567890123456789012345678901234567890-54b", BOTH, TAKEN},
    {"a2345678901234567890123456789012345678901234567890-55bb", BOTH, REFUSED},
    {"a2345678901234567890123456789012345678901234567890-54b",
     "pytorchReplicaSpecs: {Worker: {replicas: 11, template: " POD "}}", REFUSED_BY_CODE},
};

static void both_refuse_the_same(void **state)
{
    crd_fixture_check(*state, rows, array_length(rows));
}

/* ---- nothing is dropped ---- */

static void every_field_that_is_read_is_kept(void **state)
{
    struct crd_fixture *f = *state;
    static const char *const paths[] = {"tests/fuzz/corpus/manifest/full.yaml",
                                        "tests/fuzz/corpus/manifest/elastic.yaml"};
    for (size_t i = 0; i < array_length(paths); i++) {
        struct error err;
        auto_free char *text = NULL;
        size_t bytes;
        assert_ok(file_read(paths[i], MAX_BYTES, &text, &bytes, &err), &err);
        struct json *object = crd_fixture_parse(text);
        const struct json *items = json_get(object, "items"); /* of a List */
        crd_fixture_look(f, items ? json_at(items, 0) : object);
        assert_string_equal(lines_join(&f->by_schema), "");
        json_free(object);
    }
}

/* A status with everything in it. */
static struct job_status full_status(struct arena *arena)
{
    struct job_status status = {.start_ms = 1000, .completion_ms = 2000};
    for (int type = 0; type < CONDITION_TYPES; type++)
        status.conditions[status.condition_count++] = (struct condition){.type = type,
                                                                         .status = true,
                                                                         .reason = "Reason",
                                                                         .message = "message",
                                                                         .update_ms = 1000,
                                                                         .transition_ms = 1000};
    for (int type = 0; type < REPLICA_TYPES; type++) {
        status.replicas[type] =
            (struct replica_status){.present = true, .active = 1, .succeeded = 1, .failed = 1};
        struct replica_history replica = {.type = type,
                                          .index = 1,
                                          .uid = "u",
                                          .counted = 1,
                                          .earlier = 1,
                                          .incidents = 1,
                                          .left = true};
        history_put(&status.history, replica, arena);
        history_complete(&status.history, type, 0, arena);
    }
    status.history.failures = 4;
    status.history.attempt = 1;
    status.history.known = true;
    status.history.incidents = status.history.incidents_without_cause = 1;
    status.history.incident_ms = 1000;
    status.training = training_open();
    for (const struct training_field *field = training_fields; field->name; field++)
        assert_true(field->kind == TRAINING_REAL
                        ? training_set_real(&status.training, field, 1234.5)
                    : field->kind == TRAINING_TIME
                        ? training_set_time(&status.training, field, INT64_C(1700000000000))
                        : training_set_count(&status.training, field, 4096));
    status.goodput = (struct goodput){.known = true, .furthest_step = 4096};
    for (int k = 0; k < GOODPUT_KINDS; k++)
        status.goodput.ms[k] = 1500;
    for (int k = 0; k < TRAINING_SPENT_KINDS; k++)
        status.training.spent_ms[k] = 1500;
    return status;
}

static void every_field_that_is_written_is_kept(void **state)
{
    struct crd_fixture *f = *state;
    struct json *object = crd_fixture_job(f, "j", BOTH);
    struct lines none;
    lines_init(&none, f->arena);
    const struct job *decoded = decode_job(object, 6, f->arena, &none, &none);
    struct job_status status = full_status(f->arena);
    json_set(object, "status", manifest_status(decoded, &status));
    crd_fixture_look(f, object);
    assert_string_equal(lines_join(&f->by_schema), "");
    json_free(object);
}

/* ---- what is written twice ---- */

#define POD_SPEC ".template.spec."

/* Two schemas that are the same but for what the second alone says. */
static const struct copy {
    const char *one, *other, *more;
} copies[] = {
    {REPLICAS "Master.template", REPLICAS "Worker.template", NULL},
    {REPLICAS "Master.restartPolicy", REPLICAS "Worker.restartPolicy", NULL},
    {REPLICAS "Master" POD_SPEC "initContainers", REPLICAS "Master" POD_SPEC "containers",
     "minItems"},
};

static void copies_are_alike(void **state)
{
    struct crd_fixture *f = *state;
    for (size_t i = 0; i < array_length(copies); i++) {
        const struct copy *copy = &copies[i];
        struct json *one = crd_fixture_schema_at(f, copy->one),
                    *other = json_clone(crd_fixture_schema_at(f, copy->other));
        if (copy->more)
            json_remove(other, copy->more);
        if (!json_is_equal(one, other))
            fail_msg("%s and %s differ", copy->one, copy->other);
        json_free(other);
    }
}

/* ---- servers that know no rules ---- */

/* The JSON pointers to all rules. */
static void find_rules(const struct json *at, const char *path, struct lines *found)
{
    const struct json *value;
    size_t i = 0;
    if (json_get(at, "x-kubernetes-validations"))
        lines_add(found, "%s/x-kubernetes-validations", path);
    json_each_member(value, at) {
        find_rules(value, arena_printf(found->arena, "%s/%s", path, json_key(value)), found);
    }
    json_each_item(value, at) {
        find_rules(value, arena_printf(found->arena, "%s/%zu", path, i++), found);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void the_overlay_takes_every_rule_away(void **state)
{
    struct crd_fixture *f = *state;
    struct lines rules, removed;
    struct error err;
    auto_free char *text = NULL;
    size_t bytes;
    struct json *documents, *step;
    lines_init(&rules, f->arena);
    lines_init(&removed, f->arena);
    find_rules(f->crd, "/spec/versions/0/schema/openAPIV3Schema", &rules);
    assert_ok(file_read(WITHOUT_RULES, MAX_BYTES, &text, &bytes, &err), &err);
    assert_ok(yaml_parse(text, bytes, WITHOUT_RULES, &documents, &err), &err);
    json_each_item(step, json_at(documents, 0)) {
        assert_string_equal(json_as_text(json_get(step, "op")), "remove");
        lines_add(&removed, "%s", json_as_text(json_get(step, "path")));
    }
    json_free(documents);
    qsort(rules.items, rules.count, sizeof *rules.items, by_text);
    qsort(removed.items, removed.count, sizeof *removed.items, by_text);
    assert_true(rules.count > 0);
    assert_string_equal(lines_join(&removed), lines_join(&rules));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(words_and_limits_are_those_of_the_code, crd_fixture_open,
                                        crd_fixture_close),
        cmocka_unit_test_setup_teardown(both_refuse_the_same, crd_fixture_open, crd_fixture_close),
        cmocka_unit_test_setup_teardown(every_field_that_is_read_is_kept, crd_fixture_open,
                                        crd_fixture_close),
        cmocka_unit_test_setup_teardown(every_field_that_is_written_is_kept, crd_fixture_open,
                                        crd_fixture_close),
        cmocka_unit_test_setup_teardown(copies_are_alike, crd_fixture_open, crd_fixture_close),
        cmocka_unit_test_setup_teardown(the_overlay_takes_every_rule_away, crd_fixture_open,
                                        crd_fixture_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
