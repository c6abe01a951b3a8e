#include "agent/comm/nccl_api.h"

#include "base/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY      "libnccl.so.2"
#define LAUNCH_ORDER "NCCL_LAUNCH_ORDER_IMPLICIT"

void nccl_api_version_text(int version, char *out)
{
    snprintf(out, 16, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

bool nccl_api_is_loaded(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    if (library)
        dlclose(library);
    return library;
}

int nccl_api_open(struct nccl_api *ret_api, struct error *err)
{
    static const char *const names[] = {LIBRARY, NULL};
    static const struct library_symbol symbols[] = {
        {"ncclGetVersion", offsetof(struct nccl_api, get_version), false},
        {"ncclGetUniqueId", offsetof(struct nccl_api, get_unique_id), false},
        {"ncclCommInitRankConfig", offsetof(struct nccl_api, comm_init), false},
        {"ncclCommFinalize", offsetof(struct nccl_api, comm_finalize), false},
        {"ncclCommDestroy", offsetof(struct nccl_api, comm_destroy), false},
        {"ncclCommAbort", offsetof(struct nccl_api, comm_abort), false},
        {"ncclGroupStart", offsetof(struct nccl_api, group_start), false},
        {"ncclGroupEnd", offsetof(struct nccl_api, group_end), false},
        {"ncclCommGetAsyncError", offsetof(struct nccl_api, comm_error), false},
        {"ncclGetErrorString", offsetof(struct nccl_api, error_text), false},
        {"ncclGetLastError", offsetof(struct nccl_api, last_error), false},
        {"ncclAllGather", offsetof(struct nccl_api, all_gather), false},
        {"ncclReduceScatter", offsetof(struct nccl_api, reduce_scatter), false},
        {"ncclAllReduce", offsetof(struct nccl_api, all_reduce), false},
        {"ncclBroadcast", offsetof(struct nccl_api, broadcast), false},
        {"ncclSend", offsetof(struct nccl_api, send), false},
        {"ncclRecv", offsetof(struct nccl_api, recv), false},
        {"ncclCommRegister", offsetof(struct nccl_api, comm_register), true},
        {"ncclCommDeregister", offsetof(struct nccl_api, comm_deregister), true},
        {"ncclMemAlloc", offsetof(struct nccl_api, mem_alloc), true},
        {"ncclMemFree", offsetof(struct nccl_api, mem_free), true},
        {"ncclCommWindowRegister", offsetof(struct nccl_api, window_register), true},
        {"ncclCommWindowDeregister", offsetof(struct nccl_api, window_deregister), true},
        {NULL, 0, false},
    };
    char version[16];
    struct nccl_api api = {0};
    /* Two communicators on one GPU may deadlock if ranks launch their kernels in different orders.
     * With this NCCL keeps the order of the host's calls. */
    setenv(LAUNCH_ORDER, "1", 0); /* NCCL reads it in its first call */
    bool is_open = library_open(names, &api.library, err) == 0 &&
                   library_symbols(api.library, symbols, &api, err) == 0;
    *ret_api = api;
    if (!is_open)
        return error_wrap(err, "NCCL");
    int result = api.get_version(&api.version);
    if (result != NCCL_SUCCESS)
        return error_set(err, ERR_UNSUPPORTED, "NCCL: its version: %s", api.error_text(result));
    nccl_api_version_text(api.version, version);
    ret_api->version = api.version;
    if (api.version < NCCL_OLDEST)
        return error_set(err, ERR_UNSUPPORTED, "NCCL %s is too old: 2.14 or newer is needed",
                         version);
    if (api.version < NCCL_ROUNDS_LITTLE || !api.mem_free)
        api.mem_alloc = NULL;
    api.orders_launches =
        api.version >= NCCL_ORDERS_LAUNCHES && strcmp(getenv(LAUNCH_ORDER), "1") == 0;
    *ret_api = api;
    return 0;
}

bool nccl_api_has_windows(const struct nccl_api *api, char ret_why[NCCL_WHY_BYTES])
{
    static const char *const switches[] = {"NCCL_WIN_ENABLE", "NCCL_CUMEM_ENABLE",
                                           "NCCL_LOCAL_REGISTER"};
    char version[16];
    ret_why[0] = '\0';
    nccl_api_version_text(api->version, version);
    if (api->version < NCCL_HAS_WINDOWS || !api->mem_alloc || !api->window_register ||
        !api->window_deregister)
        snprintf(ret_why, NCCL_WHY_BYTES, "NCCL %s has none (2.27 or newer)", version);
    for (size_t i = 0; !ret_why[0] && i < sizeof switches / sizeof switches[0]; i++) {
        const char *value = getenv(switches[i]);
        if (value && strcmp(value, "0") == 0)
            snprintf(ret_why, NCCL_WHY_BYTES, "%s=0 forbids them", switches[i]);
    }
    return !ret_why[0];
}

int nccl_api_fail(const struct nccl_api *api, nccl_comm nccl, int result, const char *what,
                  struct error *err)
{
    const char *more = api->last_error(nccl);
    bool is_ours = result == NCCL_INVALID_ARGUMENT || result == NCCL_INVALID_USAGE;
    /* it allocates as it connects, at the first collectives: no fault of the GPU */
    bool is_memory = result == NCCL_UNHANDLED_CUDA_ERROR && more && strstr(more, "out of memory");
    enum error_code code = is_ours                               ? ERR_CONFIG
                           : is_memory                           ? ERR_MEMORY
                           : result == NCCL_UNHANDLED_CUDA_ERROR ? ERR_DEVICE
                                                                 : ERR_PEER;
    bool is_shm = more && (strstr(more, "/dev/shm") || strstr(more, "shared memory"));
    return error_set(err, code, "%s: NCCL: %s%s%.200s%s", what, api->error_text(result),
                     more && more[0] ? ": " : "", more ? more : "",
                     is_shm ? "; /dev/shm may be full: give the pod an emptyDir with medium: "
                              "Memory there, or the container --shm-size"
                            : "");
}
