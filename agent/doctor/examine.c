#include "agent/doctor/examine.h"

#include "agent/comm/nccl_api.h"
#include "agent/launch/launch.h"
#include "agent/process_group.h"
#include "base/cores.h"
#include "base/environment.h"
#include "base/mem.h"
#include "base/memory_left.h"
#include "base/open_files.h"
#include "kernels/device.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

_Static_assert(sizeof((struct doctor_facts *)0)->interface >= NET_INTERFACE_BYTES, "a name fits");
_Static_assert(sizeof((struct doctor_facts *)0)->address >= STORE_HOST_MAX, "an address fits");
_Static_assert(sizeof((struct doctor_facts *)0)->master >= TOPOLOGY_HOST_BYTES, "a host fits");

/* The driver's own, which CUDA's runtime has opened if it could. */
static void examine_driver(struct library_facts *ret)
{
    static const char *const names[] = {"libcuda.so.1", NULL};
    void *library;
    *ret = (struct library_facts){.name = "driver"};
    if (library_open(names, &library, &ret->why) == 0)
        snprintf(ret->file, sizeof ret->file, "%s", library_file(library));
}

static void examine_nccl(struct doctor_facts *f)
{
    struct nccl_api api;
    f->nccl = (struct library_facts){.name = "NCCL"};
    if (nccl_api_open(&api, &f->nccl.why) == 0)
        nccl_api_has_windows(&api, f->no_windows);
    f->nccl_version = api.version;
    f->has_launch_order = api.orders_launches;
    if (api.version)
        nccl_api_version_text(api.version, f->nccl.version);
    if (api.library)
        snprintf(f->nccl.file, sizeof f->nccl.file, "%s", library_file(api.library));
}

/* Opens each as a rank would. Without cuBLASLt none can be, which its own row tells. */
static void examine_gpus(struct doctor_facts *f)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    f->hides_gpus = visible != NULL;
    if (gpu_survey(&f->survey, &f->no_backend) < 0)
        return;
    for (int i = 0; i < f->survey.gpus && !f->survey.library[0].why.code; i++) {
        char name[24];
        struct device *device = NULL;
        snprintf(name, sizeof name, "cuda:%d", i);
        if (device_open(name, 1, &device, &f->refused[i]) == 0)
            device_close(device);
    }
}

static void examine_limits(struct doctor_facts *f)
{
    struct statvfs shm;
    struct rlimit locked;
    f->shm_bytes = statvfs("/dev/shm", &shm) == 0 ? (int64_t)(shm.f_blocks * shm.f_frsize) : -1;
    f->locked_bytes = -1;
    if (getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur != RLIM_INFINITY)
        f->locked_bytes = (int64_t)locked.rlim_cur;
    f->has_infiniband = access("/dev/infiniband", F_OK) == 0;
    open_files_raise(); /* as training does */
    f->open_files = open_files_limit();
    f->cores = cores_available();
    f->memory_bytes = memory_left(&f->memory_by);
}

/* This end of the route to the host; no packet is sent. */
static int find_route(const char *host, char *out, size_t out_bytes, struct error *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
    struct addrinfo *addresses = NULL;
    int failure = getaddrinfo(host, "9", &hints, &addresses);
    if (failure)
        return error_set(err, ERR_NOT_FOUND, "%s: %s", host, gai_strerror(failure));
    bool has_route = false;
    for (struct addrinfo *at = addresses; at && !has_route; at = at->ai_next) {
        auto_close int fd = socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        has_route = fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) == 0;
        if (has_route)
            net_local_host(fd, out, out_bytes);
    }
    freeaddrinfo(addresses);
    return has_route ? 0 : error_set(err, ERR_NOT_FOUND, "%s: no route leads there", host);
}

/* A key that the environment sets; "": it does not. */
static const char *setting(const char *variable)
{
    const char *value = environment_get(NULL, variable);
    return value ? value : "";
}

static void examine_rendezvous(struct doctor_facts *f)
{
    const struct topology_request wish = {
        .nproc_per_node = setting("AGENT_RUNTIME_NPROC_PER_NODE"),
        .nnodes = setting("AGENT_RUNTIME_NNODES"),
        .node_rank = -1,
        .master_addr = setting("AGENT_RUNTIME_MASTER_ADDR"),
        .max_restarts = -1,
        .count_gpus = strcmp(f->asked, "cpu") == 0 ? NULL : launch_count_gpus,
    };
    struct topology t;
    f->world_size = f->started_here = 1;
    if (topology_read(environment_get, NULL, &wish, &t, &f->no_topology) < 0)
        return;
    f->world_size = t.world_size;
    if (t.is_launcher) /* ranks of srun may see a GPU of their own each */
        f->started_here = t.local_size;
    snprintf(f->master, sizeof f->master, "%s", t.host);
    if (process_group_find_interface(&t, f->interface, f->address, &f->no_interface) == 0 &&
        t.world_size > 1 && !f->interface[0])
        find_route(t.host, f->address, sizeof f->address, &f->no_interface);
}

void examine(const char *asked, bool share_gpus, struct doctor_facts *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->asked = asked;
    ret->share_gpus = share_gpus;
    examine_rendezvous(ret); /* first: it may start a process, which a driver's threads forbid */
    examine_limits(ret);
    if (strcmp(asked, "cpu") == 0)
        return;
    examine_gpus(ret);
    examine_driver(&ret->driver);
    examine_nccl(ret);
    nvml_read_facts(&ret->nvml);
}
