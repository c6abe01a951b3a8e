#include "tests/support.h"

#include "agent/launch/topology.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

#define X64 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

/* The environment of a row: "NAME=value NAME=value". */
static const char *lookup(void *ctx, const char *name)
{
    static char value[512];
    size_t bytes = strlen(name);
    for (const char *at = ctx; at; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncmp(at, name, bytes) != 0 || at[bytes] != '=')
            continue;
        snprintf(value, sizeof value, "%.*s", (int)strcspn(at + bytes + 1, " "), at + bytes + 1);
        return value;
    }
    return NULL;
}

static int read_row(const char *environment, const struct topology_request *wish,
                    struct topology *t, struct error *err)
{
    static const struct topology_request none = {
        .nproc_per_node = "", .nnodes = "", .node_rank = -1, .master_addr = "", .max_restarts = -1};
    return topology_read(lookup, (void *)environment, wish ? wish : &none, t, err);
}

static void print_topology(const struct topology *t, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "rank %d/%d local %d/%d node %d/%d at %s:%d%s", t->rank, t->world_size,
             t->local_rank, t->local_size, t->node_rank, t->nodes, t->host, t->port,
             t->is_launcher ? " launcher" : "");
    if (topology_is_elastic(t))
        snprintf(out + strlen(out), out_bytes - strlen(out), " of %d to %d nodes", t->min_nodes,
                 t->max_nodes);
}

#define MASTER "MASTER_ADDR=j-master-0 MASTER_PORT=23456 PET_MASTER_ADDR=j-master-0 "

static const struct {
    const char *environment, *expected;
} places[] = {
    {"", "rank 0/1 local 0/1 node 0/1 at 127.0.0.1:29500"},
    /* what the operator sets: the worked examples of the behaviour book */
    {MASTER "WORLD_SIZE=3 RANK=2 PET_NODE_RANK=2 PET_NPROC_PER_NODE=auto PET_NNODES=3",
     "rank 2/3 local 0/1 node 2/3 at j-master-0:23456"},
    {MASTER "WORLD_SIZE=12 RANK=2 PET_NODE_RANK=2 PET_NPROC_PER_NODE=4 PET_NNODES=3",
     "rank 8/12 local 0/4 node 2/3 at j-master-0:23456 launcher"},
    {MASTER "WORLD_SIZE=3 RANK=1 PET_NODE_RANK=1 PET_NPROC_PER_NODE=gpu PET_NNODES=3",
     "rank 1/3 local 0/1 node 1/3 at j-master-0:23456"},
    {"PET_NPROC_PER_NODE=2 PET_NNODES=1",
     "rank 0/2 local 0/2 node 0/1 at 127.0.0.1:29500 launcher"},
    /* a child of torchrun: RANK is its own, whatever PET_* says of the pod */
    {MASTER "WORLD_SIZE=12 RANK=9 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 PET_NNODES=3 "
            "PET_NODE_RANK=2 PET_NPROC_PER_NODE=4",
     "rank 9/12 local 1/4 node 2/3 at j-master-0:23456"},
    /* by hand, without PET_*: as many pods as ranks */
    {"MASTER_ADDR=10.0.0.7 WORLD_SIZE=4 RANK=3", "rank 3/4 local 0/1 node 3/4 at 10.0.0.7:29500"},
    /* only PET_*'s place to meet */
    {"PET_MASTER_ADDR=h PET_MASTER_PORT=1234 PET_NNODES=2 PET_NODE_RANK=1",
     "rank 1/2 local 0/1 node 1/2 at h:1234"},
    {"PET_RDZV_ENDPOINT=h:99 PET_RDZV_BACKEND=c10d PET_NNODES=2:3 PET_NODE_RANK=1",
     "rank 1/3 local 0/1 node 1/3 at h:99 launcher of 2 to 3 nodes"},
    /* torchrun's c10d on one machine: the only node is the first */
    {"PET_RDZV_ENDPOINT=h:99 PET_RDZV_BACKEND=c10d PET_NNODES=1",
     "rank 0/1 local 0/1 node 0/1 at h:99"},
    {"PET_RDZV_ENDPOINT=h:99 PET_RDZV_BACKEND=c10d", "rank 0/1 local 0/1 node 0/1 at h:99"},
    {"PET_RDZV_ENDPOINT=h:99 PET_RDZV_BACKEND=c10d PET_NNODES=1:1",
     "rank 0/1 local 0/1 node 0/1 at h:99"},
    {"PET_RDZV_ENDPOINT=[2001:db8::1]:29400 PET_NNODES=2 PET_NODE_RANK=1",
     "rank 1/2 local 0/1 node 1/2 at 2001:db8::1:29400"},
    {"PET_RDZV_ENDPOINT=[::1] PET_NNODES=2 PET_NODE_RANK=1",
     "rank 1/2 local 0/1 node 1/2 at ::1:29500"},
    {"PET_RDZV_ENDPOINT=h:0 PET_NPROC_PER_NODE=2",
     "rank 0/2 local 0/2 node 0/1 at 127.0.0.1:0 launcher"},
    {"PET_RDZV_ENDPOINT=h:0 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 RANK=1 WORLD_SIZE=2 "
     "MASTER_ADDR=127.0.0.1 MASTER_PORT=4242",
     "rank 1/2 local 1/2 node 0/1 at 127.0.0.1:4242"},
    /* workers of an elastic job without a master: numbered by their names */
    {"PET_RDZV_ENDPOINT=j-worker-0:23456 PET_RDZV_BACKEND=c10d PET_NNODES=2:4 "
     "HOSTNAME=j-worker-1",
     "rank 1/4 local 0/1 node 1/4 at j-worker-0:23456 launcher of 2 to 4 nodes"},
    {"PET_RDZV_ENDPOINT=j-worker-0:23456 PET_NNODES=2:4 POD_NAME=j-worker-1 "
     "HOSTNAME=node-worker-7",
     "rank 1/4 local 0/1 node 1/4 at j-worker-0:23456 launcher of 2 to 4 nodes"},
    {"PET_RDZV_ENDPOINT=j-worker-0:23456 PET_NNODES=2:4 POD_NAME=mine HOSTNAME=j-worker-1",
     "rank 1/4 local 0/1 node 1/4 at j-worker-0:23456 launcher of 2 to 4 nodes"},
    /* our operator tells how many pods there are; more may come than that, and than MAX */
    {"PET_RDZV_ENDPOINT=j-worker-0:1 PET_NNODES=1:64 SHOAL_NNODES=3 PET_NPROC_PER_NODE=2 "
     "HOSTNAME=j-worker-70",
     "rank 140/6 local 0/2 node 70/3 at j-worker-0:1 launcher of 1 to 64 nodes"},
    /* a master trains beside the workers that PET_NNODES counts */
    {MASTER "WORLD_SIZE=3 RANK=2 PET_NODE_RANK=2 PET_RDZV_ENDPOINT=j-worker-0:1 PET_NNODES=1:4 "
            "SHOAL_NNODES=3",
     "rank 2/3 local 0/1 node 2/3 at j-master-0:23456 launcher of 2 to 5 nodes"},
    {"PET_RDZV_ENDPOINT=h:1 PET_NNODES=2:2 PET_NODE_RANK=1 SHOAL_NNODES=5",
     "rank 1/2 local 0/1 node 1/2 at h:1"},
    /* srun, one task per rank or one per node */
    {"SLURM_STEP_ID=0 SLURM_PROCID=5 SLURM_NTASKS=8 SLURM_LOCALID=1 SLURM_NODEID=1 "
     "SLURM_JOB_NUM_NODES=2 SLURM_NODELIST=n[05-06,9]",
     "rank 5/8 local 1/4 node 1/2 at n05:29500"},
    {"SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_NODEID=1 "
     "SLURM_JOB_NUM_NODES=2 SLURM_NODELIST=a,b PET_NPROC_PER_NODE=4",
     "rank 4/8 local 0/4 node 1/2 at a:29500 launcher"},
    {"SLURM_PROCID=0 SLURM_NTASKS=8", "rank 0/1 local 0/1 node 0/1 at 127.0.0.1:29500"},
    /* mpirun */
    {"MASTER_ADDR=m OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 "
     "OMPI_COMM_WORLD_LOCAL_SIZE=2",
     "rank 3/4 local 1/2 node 1/2 at m:29500"},
    {"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 "
     "OMPI_COMM_WORLD_LOCAL_SIZE=2",
     "rank 1/2 local 1/2 node 0/1 at 127.0.0.1:29500"},
    {"MASTER_ADDR=m PMI_RANK=1 PMI_SIZE=2", "rank 1/2 local 0/1 node 1/2 at m:29500"},
};

static void test_who_am_i(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(places); i++) {
        struct topology t;
        struct error err;
        char text[400];
        assert_ok(read_row(places[i].environment, NULL, &t, &err), &err);
        print_topology(&t, text, sizeof text);
        assert_string_equal(text, places[i].expected);
    }
}

static void test_wishes_win_over_the_environment(void **state)
{
    (void)state;
    static const struct topology_request wish = {.nproc_per_node = "2",
                                                 .nnodes = "4",
                                                 .node_rank = 3,
                                                 .master_addr = "elsewhere",
                                                 .master_port = 77};
    struct topology t;
    struct error err;
    char text[400];
    assert_ok(read_row(MASTER "WORLD_SIZE=3 RANK=2 PET_NNODES=3 PET_NODE_RANK=2", &wish, &t, &err),
              &err);
    print_topology(&t, text, sizeof text);
    assert_string_equal(text, "rank 6/8 local 0/2 node 3/4 at elsewhere:77 launcher");
}

static int four_gpus(void)
{
    return 4;
}

static void test_torchruns_flags_win_too(void **state)
{
    (void)state;
    static const struct {
        struct topology_request wish;
        const char *environment, *expected;
    } rows[] = {
        {{.nnodes = "2", .rdzv_endpoint = "h:1", .rdzv_backend = "c10d", .node_rank = 1},
         MASTER "PET_RDZV_BACKEND=etcd",
         "rank 1/2 local 0/1 node 1/2 at h:1"},
        {{.nnodes = "2", .rdzv_endpoint = "j-worker-0", .node_rank = -1},
         "HOSTNAME=j-worker-1",
         "rank 1/2 local 0/1 node 1/2 at j-worker-0:29500"},
        {{.nnodes = "2", .rdzv_endpoint = "h", .node_rank = -1, .launch = true},
         "SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_NODEID=1 SLURM_JOB_NUM_NODES=2",
         "rank 1/2 local 0/1 node 1/2 at h:29500 launcher"},
        {{.nnodes = "", .node_rank = -1, .standalone = true},
         MASTER "WORLD_SIZE=3 RANK=2 PET_NNODES=3 PET_NODE_RANK=2 PET_NPROC_PER_NODE=2",
         "rank 0/2 local 0/2 node 0/1 at 127.0.0.1:0 launcher"},
        {{.nnodes = "", .node_rank = -1, .launch = true},
         "",
         "rank 0/1 local 0/1 node 0/1 at 127.0.0.1:29500 launcher"},
        {{.nnodes = "", .node_rank = -1, .standalone = true, .count_gpus = four_gpus},
         "PET_NPROC_PER_NODE=gpu",
         "rank 0/4 local 0/4 node 0/1 at 127.0.0.1:0 launcher"},
        {{.nnodes = "", .node_rank = -1, .standalone = true, .count_gpus = four_gpus},
         "PET_NPROC_PER_NODE=cpu",
         "rank 0/1 local 0/1 node 0/1 at 127.0.0.1:0"},
        /* the launcher's child: what it was told by it */
        {{.nnodes = "", .node_rank = -1, .standalone = true, .launch = true},
         "LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 "
         "MASTER_PORT=4242",
         "rank 1/2 local 1/2 node 0/1 at 127.0.0.1:4242"},
        /* PyTorch's way to run several jobs on one machine, and its child */
        {{.nnodes = "1", .rdzv_endpoint = "localhost:0", .node_rank = -1, .launch = true},
         "PET_NPROC_PER_NODE=2",
         "rank 0/2 local 0/2 node 0/1 at 127.0.0.1:0 launcher"},
        {{.nnodes = "1", .rdzv_endpoint = "localhost:0", .node_rank = -1, .launch = true},
         "LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 "
         "MASTER_PORT=4242",
         "rank 1/2 local 1/2 node 0/1 at 127.0.0.1:4242"},
        /* in each round of an elastic run the ranks meet elsewhere than their launchers */
        {{.nnodes = "1:2", .rdzv_endpoint = "h:29611", .node_rank = 1},
         "LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 RANK=1 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=4242",
         "rank 1/2 local 0/1 node 1/2 at h:4242"},
        {{.nnodes = "1:2", .master_addr = "h", .master_port = 29611, .node_rank = 1},
         "LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 RANK=1 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=4242",
         "rank 1/2 local 0/1 node 1/2 at h:4242"},
        {{.nnodes = "", .rdzv_endpoint = "localhost:29522", .node_rank = -1, .launch = true},
         "PET_NPROC_PER_NODE=2",
         "rank 0/2 local 0/2 node 0/1 at localhost:29522 launcher"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct topology_request wish = rows[i].wish;
        struct topology t;
        struct error err;
        char text[400];
        wish.nproc_per_node = wish.master_addr = "";
        assert_ok(read_row(rows[i].environment, &wish, &t, &err), &err);
        print_topology(&t, text, sizeof text);
        assert_string_equal(text, rows[i].expected);
    }
}

static void test_job_id_and_restarts(void **state)
{
    (void)state;
    struct topology t;
    struct error err;
    assert_ok(read_row("PET_RDZV_ID=blue SHOAL_RESTART_COUNT=3 SHOAL_RUN_ID=a1", NULL, &t, &err),
              &err);
    assert_string_equal(t.job_id, "blue");
    assert_string_equal(t.run_id, "a1");
    assert_int_equal(t.restart_count, 3);
}

/* Only a pod of our operator restarts its ranks unasked. */
static void test_how_often_ranks_start_again(void **state)
{
    (void)state;
    static const struct {
        const char *environment;
        int wish, max_restarts;
        bool is_launcher;
    } rows[] = {
        {"", -1, 0, false},
        {"", 2, 2, true},
        {MASTER "WORLD_SIZE=3 RANK=1 PET_NODE_RANK=1", -1, 0, false},
        {MASTER "WORLD_SIZE=3 RANK=1 PET_NODE_RANK=1 SHOAL_RESTART_COUNT=0", -1, 3, true},
        {MASTER "WORLD_SIZE=3 RANK=1 PET_NODE_RANK=1 SHOAL_RESTART_COUNT=7", -1, 3, true},
        {MASTER "WORLD_SIZE=3 RANK=1 PET_NODE_RANK=1 SHOAL_RESTART_COUNT=0", 0, 0, false},
        {MASTER "WORLD_SIZE=3 RANK=1 PET_NODE_RANK=1 SHOAL_RESTART_COUNT=0", 100, 100, true},
        {"PET_NPROC_PER_NODE=2 PET_NNODES=1 SHOAL_RESTART_COUNT=0", -1, 3, true},
        {"PET_NPROC_PER_NODE=2 PET_NNODES=1 SHOAL_RESTART_COUNT=0", 0, 0, true},
        /* a rank, whose launcher counts */
        {MASTER "WORLD_SIZE=2 RANK=1 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 SHOAL_RESTART_COUNT=1", -1, 0,
         false},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct topology_request wish = {.nproc_per_node = "",
                                              .nnodes = "",
                                              .node_rank = -1,
                                              .master_addr = "",
                                              .max_restarts = rows[i].wish};
        struct topology t;
        struct error err;
        assert_ok(read_row(rows[i].environment, &wish, &t, &err), &err);
        assert_int_equal(t.max_restarts, rows[i].max_restarts);
        assert_int_equal(t.is_launcher, rows[i].is_launcher);
    }
}

static void test_what_only_the_run_knows(void **state)
{
    (void)state;
    static const struct {
        const char *environment, *secret;
    } rows[] = {
        {"", ""},
        {"SHOAL_RUN_ID=a1", "a1"},
        {"SHOAL_RUN_ID=a1 SHOAL_RUN_SECRET=s", "s"},
        {"SHOAL_RUN_SECRET=s", "s"},
        /* a launcher of one of several nodes has named the run, which the others cannot know */
        {"SHOAL_RUN_ID=a1 SHOAL_RUN_SECRET=", ""},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct topology t;
        struct error err;
        assert_ok(read_row(rows[i].environment, NULL, &t, &err), &err);
        assert_string_equal(t.secret, rows[i].secret);
    }
}

static void test_contradictions_name_the_variable_and_the_value(void **state)
{
    (void)state;
    static const struct {
        const char *environment;
        enum error_code code;
        const char *expected;
    } rows[] = {
        {"PET_NPROC_PER_NODE=many", ERR_CONFIG, "PET_NPROC_PER_NODE: 'many' is not auto"},
        {"PET_NPROC_PER_NODE=0", ERR_CONFIG, "PET_NPROC_PER_NODE: '0'"},
        {"PET_NNODES=-1", ERR_CONFIG, "PET_NNODES: '-1' is not a number of nodes"},
        {"PET_NNODES=3:2 PET_NODE_RANK=0", ERR_CONFIG, "PET_NNODES: '3:2'"},
        {"MASTER_ADDR=h PET_NNODES=2 PET_NODE_RANK=2", ERR_CONFIG, "node rank 2 is not below"},
        {"MASTER_ADDR=h PET_NNODES=2 PET_NODE_RANK=x", ERR_CONFIG, "PET_NODE_RANK: 'x'"},
        {"MASTER_PORT=65536", ERR_CONFIG, "MASTER_PORT: '65536' is not a whole number from 1"},
        {"MASTER_PORT=tcp://10.0.0.1:80", ERR_CONFIG, "MASTER_PORT: 'tcp://10.0.0.1:80'"},
        {"MASTER_ADDR=h WORLD_SIZE=3 RANK=0 PET_NPROC_PER_NODE=2", ERR_CONFIG,
         "WORLD_SIZE: 3 is not a multiple of 2"},
        {"LOCAL_RANK=0 RANK=4 WORLD_SIZE=4", ERR_CONFIG, "RANK: 4 is not below WORLD_SIZE, 4"},
        {"LOCAL_RANK=2 LOCAL_WORLD_SIZE=2 RANK=2 WORLD_SIZE=4", ERR_CONFIG,
         "LOCAL_RANK: 2 is not below LOCAL_WORLD_SIZE, 2"},
        /* half of an identity would make every process rank 0 of its own job */
        {"LOCAL_RANK=1 LOCAL_WORLD_SIZE=2", ERR_CONFIG, "RANK: not set, although LOCAL_RANK is"},
        {"LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 RANK=1", ERR_CONFIG, "WORLD_SIZE: not set, although"},
        {"MASTER_ADDR=h PET_NNODES=2", ERR_CONFIG,
         "PET_NODE_RANK (or --node_rank): not set, although"},
        {"PET_NNODES=2 PET_NODE_RANK=1", ERR_CONFIG,
         "MASTER_ADDR (or --master_addr): not set, although"},
        {"PET_RDZV_ENDPOINT=w-0:23456 PET_RDZV_BACKEND=c10d PET_NNODES=1:3", ERR_CONFIG,
         "PET_NODE_RANK (or --node_rank): not set, although"},
        {"PET_RDZV_ENDPOINT=w-0:23456 PET_NNODES=1:3 HOSTNAME=gpu-node-3", ERR_CONFIG,
         "or on the host's network set POD_NAME (fieldRef: metadata.name)"},
        {"PET_RDZV_BACKEND=etcd-v2 PET_RDZV_ENDPOINT=e:2379 PET_NODE_RANK=0", ERR_UNSUPPORTED,
         "PET_RDZV_BACKEND: 'etcd-v2'"},
        {"PET_RDZV_ENDPOINT=j-worker-0:1 PET_NNODES=1:64 SHOAL_NNODES=0 HOSTNAME=j-worker-1",
         ERR_CONFIG, "SHOAL_NNODES: '0' is not a whole number from 1"},
        {"SLURM_STEP_ID=0 SLURM_PROCID=x SLURM_NTASKS=2", ERR_CONFIG, "SLURM_PROCID: 'x'"},
        {"OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=2", ERR_CONFIG,
         "OMPI_COMM_WORLD_RANK: 2 is not below OMPI_COMM_WORLD_SIZE, 2"},
        {"PET_RDZV_ENDPOINT=h:0 PET_NNODES=2 PET_NODE_RANK=0", ERR_CONFIG,
         "is for the ranks of one launcher: name a port that is free on the first node"},
        {"PET_RDZV_ENDPOINT=h:0 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_NODEID=0 "
         "SLURM_LOCALID=1 SLURM_JOB_NUM_NODES=1",
         ERR_CONFIG, "is for the ranks of one launcher"},
        {"PET_RDZV_ENDPOINT=:80 PET_NODE_RANK=0", ERR_CONFIG, "PET_RDZV_ENDPOINT: ':80'"},
        {"PET_RDZV_ENDPOINT=h:port PET_NODE_RANK=0", ERR_CONFIG, "PET_RDZV_ENDPOINT: 'h:port'"},
        {"PET_RDZV_ENDPOINT=fd00::1 PET_NODE_RANK=0", ERR_CONFIG,
         "'fd00::1' is not HOST:PORT (an address of IPv6: [ADDRESS]:PORT)"},
        {"PET_RDZV_ENDPOINT=[]:80 PET_NODE_RANK=0", ERR_CONFIG, "'[]:80' is not HOST:PORT"},
        {"PET_RDZV_ENDPOINT=[fd00::1]80 PET_NODE_RANK=0", ERR_CONFIG, "'[fd00::1]80'"},
        {"MASTER_ADDR=h SHOAL_RUN_ID=" X64, ERR_CONFIG, "SHOAL_RUN_ID: longer than 63 bytes"},
        {"MASTER_ADDR=h PET_RDZV_ID=" X64 X64, ERR_CONFIG, "PET_RDZV_ID: longer than 127 bytes"},
        {"MASTER_ADDR=h PET_NNODES=4096 PET_NODE_RANK=0 PET_NPROC_PER_NODE=8", ERR_CONFIG,
         "32768 ranks are more than 4096"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct topology t;
        struct error err;
        int result = read_row(rows[i].environment, NULL, &t, &err);
        assert_fails(result, &err, rows[i].code, rows[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_am_i),
        cmocka_unit_test(test_wishes_win_over_the_environment),
        cmocka_unit_test(test_torchruns_flags_win_too),
        cmocka_unit_test(test_job_id_and_restarts),
        cmocka_unit_test(test_how_often_ranks_start_again),
        cmocka_unit_test(test_what_only_the_run_knows),
        cmocka_unit_test(test_contradictions_name_the_variable_and_the_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
