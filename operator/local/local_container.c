#include "operator/local/local_container.h"
#include "operator/job/names.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/contract.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/local/local_env.h"

/* One container on its way to a process. */
struct builder {
    const struct pod_spec *pod;
    const struct container *container;
    const struct local_site *site;
    struct arena *arena;
    struct local_env declared; /* the manifest's variables: all that $(NAME) can refer to */
};

/* A run may itself be started from a pod or by torchrun: their variables must not leak in. */
static bool is_rendezvous_name(const char *name)
{
    static const char *const names[] = {
        ENV_MASTER_ADDR,   ENV_MASTER_PORT,     ENV_WORLD_SIZE,       ENV_RANK,   ENV_LOCAL_RANK,
        ENV_RESTART_COUNT, ENV_PROGRESS_SOCKET, ENV_LOCAL_WORLD_SIZE, ENV_RUN_ID, ENV_JOB};
    for (size_t i = 0; i < array_length(names); i++)
        if (!strcmp(name, names[i]))
            return true;
    return str_starts_with(name, "PET_");
}

/* The value that stands for `value` on this machine: SERVICE, SERVICE:PORT, or the port that the
 * rendezvous variables give beside a service. Anything else stays as it is. */
static const char *localize(const struct builder *b, const char *name, const char *value)
{
    int64_t port = 0;
    const struct local_address *address = NULL;
    /* A port alone does not show whose it is: the service stands in MASTER_ADDR. */
    if (!strcmp(name, ENV_MASTER_PORT) || !strcmp(name, ENV_PET_MASTER_PORT)) {
        const char *service = "";
        for (size_t i = 0; i < b->container->env_count; i++)
            if (!strcmp(b->container->env[i].name, ENV_MASTER_ADDR))
                service = b->container->env[i].value;
        if (str_to_i64(value, 1, UINT16_MAX, &port))
            address = local_addresses_find(b->site->addresses, service, strlen(service), port);
        return address ? arena_printf(b->arena, "%d", address->local_port) : value;
    }
    const char *colon = strrchr(value, ':');
    if (colon && str_to_i64(colon + 1, 1, UINT16_MAX, &port))
        address = local_addresses_find(b->site->addresses, value, (size_t)(colon - value), port);
    if (address)
        return arena_printf(b->arena, LOCALHOST ":%d", address->local_port);
    return local_addresses_find(b->site->addresses, value, strlen(value), 0) ? LOCALHOST : value;
}

/* "" if there is no such key. */
static const char *value_of(const struct pairs *pairs, const char *key, size_t key_length)
{
    const char *value = "";
    for (size_t i = 0; i < pairs->count; i++)
        if (!strncmp(pairs->items[i].key, key, key_length) && !pairs->items[i].key[key_length])
            value = pairs->items[i].value;
    return value;
}

/* metadata.labels['KEY'] -> the value, "" if there is no such label. NULL if path is another. */
static const char *keyed_field(const struct builder *b, const char *path, const char *prefix,
                               const struct pairs *pairs)
{
    size_t length = strlen(path);
    if (!str_starts_with(path, prefix) || length < strlen(prefix) + 2 ||
        strcmp(path + length - 2, "']"))
        return NULL;
    const char *key = path + strlen(prefix);
    return arena_strdup(b->arena, value_of(pairs, key, length - strlen(prefix) - 2));
}

/* valueFrom.fieldRef; NULL: not a field that a pod has here. */
static const char *field_value(const struct builder *b, const char *path)
{
    char *host = arena_alloc(b->arena, HOST_NAME_MAX + 1);
    gethostname(host, HOST_NAME_MAX);
    const struct pair fields[] = {
        {"metadata.name", b->pod->name},        {"metadata.namespace", b->pod->namespace_},
        {"metadata.uid", b->pod->owner_uid},    {"spec.nodeName", host},
        {"spec.serviceAccountName", "default"}, {"status.hostIP", LOCALHOST},
        {"status.hostIPs", LOCALHOST},          {"status.podIP", LOCALHOST},
        {"status.podIPs", LOCALHOST},
    };
    for (size_t i = 0; i < array_length(fields); i++)
        if (!strcmp(fields[i].key, path))
            return fields[i].value;
    const char *label = keyed_field(b, path, "metadata.labels['", &b->pod->labels);
    return label ? label : keyed_field(b, path, "metadata.annotations['", &b->pod->annotations);
}

/* valueFrom.resourceFieldRef: what the whole machine has, as for a container without limits. */
static const char *resource_value(const struct builder *b, const char *resource)
{
    if (!strcmp(resource, "limits.cpu") || !strcmp(resource, "requests.cpu"))
        return arena_printf(b->arena, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    if (!strcmp(resource, "limits.memory") || !strcmp(resource, "requests.memory"))
        return arena_printf(b->arena, "%lld",
                            (long long)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
    return NULL;
}

/* In the manifest's order, as the kubelet: $(NAME) refers to what was declared before, and to
 * nothing of our own environment. */
static int declare(struct builder *b, const struct env_var *var, struct error *err)
{
    const char *value = NULL;
    switch (var->source) {
    case ENV_LITERAL:
        value = localize(b, var->name, local_env_expand(&b->declared, var->value));
        break;
    case ENV_FIELD:
        value = field_value(b, var->value);
        break;
    case ENV_RESOURCE:
        value = resource_value(b, var->value);
        break;
    case ENV_CONFIG_MAP:
    case ENV_SECRET:
    case ENV_FILE:
        if (var->optional)
            return 0;
        return error_set(err, ERR_UNSUPPORTED,
                         "env %s comes from %s %s, which only a cluster has; state its value",
                         var->name,
                         var->source == ENV_SECRET ? "secret"
                         : var->source == ENV_FILE ? "a file of volume"
                                                   : "config map",
                         var->value);
    }
    if (!value)
        return error_set(err, ERR_UNSUPPORTED, "env %s comes from %s, which only a cluster has",
                         var->name, var->value);
    local_env_set(&b->declared, var->name, value);
    return 0;
}

/* The whole environment: what we were given, the PATH to our own programs, then the manifest's. */
static const char *const *build_environment(const struct builder *b, const char *restart_count)
{
    struct local_env env = {.arena = b->arena};
    for (const char *const *entry = b->site->environment; *entry; entry++) {
        size_t length = strcspn(*entry, "=");
        const char *name = arena_strndup(b->arena, *entry, length);
        if ((*entry)[length] && !is_rendezvous_name(name))
            local_env_set(&env, name, *entry + length + 1);
    }
    local_env_set(&env, "HOSTNAME", b->pod->name); /* as in every container */
    for (size_t i = 0; i < b->declared.count; i++)
        local_env_set(&env, b->declared.vars[i].name, b->declared.vars[i].value);
    if (b->site->agent_image_dir && names_image_is(b->container->image, AGENT_PROGRAM)) {
        const char *path = local_env_get(&env, "PATH");
        local_env_set(&env, "PATH",
                      arena_printf(b->arena, "%s:%s", b->site->agent_image_dir,
                                   path && *path ? path : "/usr/local/bin:/usr/bin:/bin"));
    }
    if (b->site->program_dir) {
        const char *path = local_env_get(&env, "PATH");
        local_env_set(&env, "PATH",
                      path && *path ? arena_printf(b->arena, "%s:%s", path, b->site->program_dir)
                                    : b->site->program_dir);
    }
    if (b->site->progress_socket)
        local_env_set(&env, ENV_PROGRESS_SOCKET, b->site->progress_socket);
    return local_env_strings(&env, restart_count);
}

/* The launcher that a command of the agent's image is, where that is one of the agent's names
 * there; else NULL. */
static const char *launcher_of(const struct container *container)
{
    static const char *const launchers[] = {AGENT_LAUNCHERS};
    if (container->command.count == 0 || !names_image_is(container->image, AGENT_PROGRAM))
        return NULL;
    const char *command = container->command.items[0];
    for (size_t i = 0; i < array_length(launchers); i++)
        if (strcmp(str_after_last(command, '/'), launchers[i]) == 0)
            return launchers[i];
    return NULL;
}

static int build_arguments(struct builder *b, const char *const **ret_argv, struct error *err)
{
    const struct strings *command = &b->container->command, *args = &b->container->args;
    const char **argv = arena_array(b->arena, const char *, command->count + args->count + 2);
    size_t count = 0;
    if (command->count == 0) {
        if (!names_image_is(b->container->image, AGENT_PROGRAM))
            return error_set(err, ERR_INPUT,
                             "no command: images are not run here, so the entry point of %s is "
                             "not known; add command: [...]",
                             b->container->image ? b->container->image : "its image");
        argv[count++] = AGENT_PROGRAM;
    }
    const char *launcher = launcher_of(b->container);
    if (launcher) {
        argv[count++] = AGENT_PROGRAM;
        argv[count++] = launcher;
    }
    for (size_t i = launcher ? 1 : 0; i < command->count; i++)
        argv[count++] = local_env_expand(&b->declared, command->items[i]);
    for (size_t i = 0; i < args->count; i++)
        argv[count++] = local_env_expand(&b->declared, args->items[i]);
    *ret_argv = argv;
    return 0;
}

int local_container_build(const struct pod_spec *pod, const struct container *container,
                          const struct local_site *site, const char *restart_count,
                          struct arena *arena, struct local_process *ret_process, struct error *err)
{
    struct builder b = {.pod = pod,
                        .container = container,
                        .site = site,
                        .arena = arena,
                        .declared = {.arena = arena}};
    for (size_t i = 0; i < container->env_count; i++)
        if (declare(&b, &container->env[i], err) < 0)
            return -1;
    struct local_process process = {
        .output = -1, .socket_path = site->progress_socket, .links_path = site->agent_image_dir};
    if (build_arguments(&b, &process.argv, err) < 0)
        return -1;
    process.env = build_environment(&b, restart_count);
    if (container->working_dir) {
        /* Absolute now: the process is started later, and from another process. */
        auto_free char *path = realpath(container->working_dir, NULL);
        process.directory = arena_strdup(arena, path ? path : container->working_dir);
    }
    *ret_process = process;
    return 0;
}
