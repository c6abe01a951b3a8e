/* How many GPUs a job asks for: by resource, replica and container. */
#include "tests/support.h"

#include "base/mem.h"
#include "operator/job/gpus.h"

struct row {
    const char *resource;
    int64_t milli;
    struct optional replicas;
    int64_t gpus;
};

static void what_counts(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"nvidia.com/gpu", 8000, {true, 4}, 32},
        {"amd.com/gpu", 8000, {true, 1}, 8},
        {"nvidia.com/mig-1g.10gb", 2000, {true, 3}, 6},
        {"nvidia.com/gpu", 8000, {false, 0}, 8}, /* an invalid job has no defaults */
        {"nvidia.com/gpu", 8000, {true, 0}, 0},
        {"nvidia.com/gpu", 8000, {true, -3}, 0},
        {"nvidia.com/gpu", INT64_MAX, {true, 4}, 0}, /* no such number */
        {"nvidia.com/gpu", 8000, {true, INT64_MAX}, 0},
        {"cpu", 8000, {true, 4}, 0},
        {"gpu", 8000, {true, 4}, 0},
        {"example.com/gpus", 8000, {true, 4}, 0},
        {"nvidia.com/gpu.shared", 8000, {true, 4}, 0},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct quantity asked = {.resource = rows[i].resource, .milli = rows[i].milli};
        struct container containers[2] = {{.name = "helper"},
                                          {.name = "pytorch", .requests = {&asked, 1}}};
        struct job job = {.name = "j"};
        job.replicas[REPLICA_WORKER] =
            (struct replica_spec){.present = true,
                                  .replicas = rows[i].replicas,
                                  .template_ = {.containers = containers, .container_count = 2}};
        assert_int_equal(gpus_asked(&job), rows[i].gpus);
        job.replicas[REPLICA_MASTER] = job.replicas[REPLICA_WORKER];
        assert_int_equal(gpus_asked(&job), 2 * rows[i].gpus);
        job.replicas[REPLICA_MASTER].present = false;
        assert_int_equal(gpus_asked(&job), rows[i].gpus);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
