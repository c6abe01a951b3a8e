/* What a job is called, of what a process is told. */
#include "tests/support.h"

#include "agent/launch/job_name.h"
#include "base/mem.h"

static void a_job_has_the_name_that_people_gave_it(void **state)
{
    (void)state;
    static const struct {
        const char *job, *id, *pod_namespace, *name, *namespace_;
    } rows[] = {
        {NULL, "", NULL, "", ""},
        {NULL, "blue", NULL, "blue", ""},
        {NULL, "blue", "team", "blue", "team"},
        {"default/mnist", "", NULL, "mnist", "default"},
        {"default/mnist", "mnist-2", "", "mnist", "default"},
        {"default/mnist", "", "team", "mnist", "team"},
        {"mnist", "blue", NULL, "blue", ""},
        {"/mnist", "blue", NULL, "blue", ""},
        {"default/", "blue", NULL, "blue", ""},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct job_name found = job_name_of(rows[i].job, rows[i].id, rows[i].pod_namespace);
        assert_string_equal(found.name, rows[i].name);
        assert_string_equal(found.namespace_, rows[i].namespace_);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_has_the_name_that_people_gave_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
