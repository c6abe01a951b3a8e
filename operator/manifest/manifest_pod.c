#include "operator/manifest/manifest.h"

#include "base/contract.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/job/resources.h"

#include <assert.h>
#include <jansson.h>
#include <string.h>

/* A template of init containers has 64 KiB with all else that is in it. */
#define NAMES_MAX_BYTES (64 << 10)

/* The array under `key`, made if it is not there. */
static json_t *array_at(json_t *object, const char *key)
{
    json_t *array = json_object_get(object, key);
    if (!json_is_array(array)) {
        array = json_array();
        json_object_set_new(object, key, array);
    }
    return array;
}

/* pod_build and defaults_apply add behind what the template has, so what the written container
 * lacks is at the end of each list. */
static void add_to_container(json_t *written, const struct container *container)
{
    json_t *env = array_at(written, "env");
    for (size_t i = json_array_size(env); i < container->env_count; i++)
        json_array_append_new(env, json_pack("{s:s, s:s}", "name", container->env[i].name, "value",
                                             container->env[i].value));
    for (size_t i = json_array_size(json_object_get(written, "ports")); i < container->port_count;
         i++) {
        const struct port *port = &container->ports[i];
        json_array_append_new(array_at(written, "ports"),
                              json_pack("{s:s, s:i, s:s}", "name", port->name, "containerPort",
                                        (int)port->number, "protocol", port->protocol));
    }
}

static const char *restart_policy(enum pod_restart restart)
{
    static const char *const policies[] = {
        [POD_RESTART_ALWAYS] = "Always",
        [POD_RESTART_ON_FAILURE] = "OnFailure",
        [POD_RESTART_NEVER] = "Never",
    };
    return policies[restart];
}

/* What of `all` a LimitRange or a QoS class goes by; devices are the user's containers' alone. */
static json_t *sizes_of(const json_t *all)
{
    static const char *const names[] = {"cpu", "memory", "ephemeral-storage"};
    json_t *sizes = json_object();
    for (size_t i = 0; i < array_length(names); i++)
        if (json_object_get(all, names[i]))
            json_object_set(sizes, names[i], json_object_get(all, names[i]));
    return sizes;
}

/* Our own containers that do not say what they ask for ask for as much as container `pytorch`. What
 * a namespace allows to that one it allows to them, the pod's QoS class stays what the user made
 * it, and nothing more is reserved: of init containers only the most counts. But for a
 * sidecar (KEP-753), which asks beside the others all the time. */
static void size_init_containers(json_t *init_containers, const json_t *containers)
{
    const json_t *main = NULL;
    for (size_t i = 0; i < json_array_size(containers); i++) {
        const json_t *container = json_array_get(containers, i);
        const char *name = json_string_value(json_object_get(container, "name"));
        if (name && strcmp(name, API_CONTAINER_NAME) == 0)
            main = json_object_get(container, "resources");
    }
    for (size_t i = 0; i < json_array_size(init_containers) && main; i++) {
        json_t *container = json_array_get(init_containers, i);
        const char *restart = json_string_value(json_object_get(container, "restartPolicy"));
        bool is_sidecar = restart && strcmp(restart, "Always") == 0;
        if (!is_sidecar && !json_object_get(container, "resources"))
            json_object_set_new(container, "resources",
                                json_pack("{s:o, s:o}", "limits",
                                          sizes_of(json_object_get(main, "limits")), "requests",
                                          sizes_of(json_object_get(main, "requests"))));
    }
}

static json_t *pod_spec(const struct pod_spec *pod, const json_t *init_containers)
{
    json_t *spec = json_deep_copy(json_object_get(pod->raw, "spec"));
    json_t *containers = json_object_get(spec, "containers");
    for (size_t i = 0; i < pod->container_count; i++)
        add_to_container(json_array_get(containers, i), &pod->containers[i]);
    if (json_array_size(init_containers)) {
        json_t *copy = json_deep_copy(init_containers);
        size_init_containers(copy, containers);
        json_array_extend(array_at(spec, "initContainers"), copy);
        json_decref(copy);
    }
    json_object_set_new(spec, "restartPolicy", json_string(restart_policy(pod->restart)));
    if (pod->scheduler_name)
        json_object_set_new(spec, "schedulerName", json_string(pod->scheduler_name));
    return spec;
}

/* By this the ends of our own containers are told from those of the user's. */
static void annotate_init_containers(json_t *metadata, const json_t *init_containers)
{
    auto_str struct str names;
    str_init(&names, NAMES_MAX_BYTES);
    for (size_t i = 0; i < json_array_size(init_containers); i++) {
        const json_t *name = json_object_get(json_array_get(init_containers, i), "name");
        str_printf(&names, "%s%s", i ? "," : "", json_string_value(name));
    }
    if (!names.length || strcmp(str_text(&names), INIT_CONTAINER_NAME) == 0)
        return;
    if (!json_object_get(metadata, "annotations"))
        json_object_set_new(metadata, "annotations", json_object());
    json_object_set_new(json_object_get(metadata, "annotations"), ANNOTATION_INIT_CONTAINERS,
                        json_string(str_text(&names)));
}

struct json_t *manifest_pod(const struct job *job, const struct pod_spec *pod,
                            const struct json_t *init_containers)
{
    assert(pod->raw);
    json_t *object = manifest_object("v1", "Pod", pod->name, job, &pod->labels, &pod->annotations);
    json_t *metadata = json_object_get(object, "metadata");
    const json_t *finalizers = json_object_get(json_object_get(pod->raw, "metadata"), "finalizers");
    if (json_array_size(finalizers))
        json_object_set_new(metadata, "finalizers", json_deep_copy(finalizers));
    annotate_init_containers(metadata, init_containers);
    json_object_set_new(object, "spec", pod_spec(pod, init_containers));
    return object;
}
