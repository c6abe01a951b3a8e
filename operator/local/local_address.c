#include "operator/local/local_address.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "operator/manifest/pod.h"

/* With their own numbers services share ports: only one of them will be bound here. */
static bool is_taken(const struct local_addresses *addresses, int32_t local_port)
{
    for (size_t i = 0; i < addresses->count; i++)
        if (addresses->items[i].local_port == local_port)
            return true;
    return false;
}

static int take_port(struct local_addresses *addresses, int32_t port, bool keep_ports,
                     int32_t *ret_local_port, struct error *err)
{
    if (!keep_ports)
        return local_ports_take(&addresses->ports, ret_local_port, err);
    *ret_local_port = port;
    return is_taken(addresses, port) ? 0 : local_ports_take_fixed(&addresses->ports, port, err);
}

static int add(struct local_addresses *addresses, const char *service, int32_t port,
               bool keep_ports, struct error *err)
{
    int32_t local_port;
    if (take_port(addresses, port, keep_ports, &local_port, err) < 0)
        return error_wrap(err, "service %s", service);
    addresses->items =
        xrealloc(addresses->items, (addresses->count + 1) * sizeof *addresses->items);
    addresses->items[addresses->count++] =
        (struct local_address){.service = service, .port = port, .local_port = local_port};
    return 0;
}

int local_addresses_open(struct local_addresses *addresses, const struct job *job, bool keep_ports,
                         struct error *err)
{
    addresses->arena = arena_open();
    for (int type = 0; type < REPLICA_TYPES; type++) {
        const struct replica_spec *replica = &job->replicas[type];
        for (int32_t i = 0; replica->present && i < replica->replicas.value; i++) {
            const struct service_spec *spec = pod_build_service(job, type, i, addresses->arena);
            for (size_t p = 0; p < spec->port_count; p++)
                if (add(addresses, spec->name, spec->ports[p].number, keep_ports, err) < 0)
                    return -1;
        }
    }
    return 0;
}

void local_addresses_close(struct local_addresses *addresses)
{
    local_ports_close(&addresses->ports);
    free(take(addresses->items));
    arena_close(take(addresses->arena));
    addresses->count = 0;
}

const struct local_address *local_addresses_find(const struct local_addresses *addresses,
                                                 const char *service, size_t length, int64_t port)
{
    for (size_t i = 0; i < addresses->count; i++) {
        const struct local_address *address = &addresses->items[i];
        if (!strncmp(address->service, service, length) && !address->service[length] &&
            (port == 0 || address->port == port))
            return address;
    }
    return NULL;
}
