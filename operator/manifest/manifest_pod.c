#include "operator/manifest/manifest_internal.h"

#include "base/contract.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/job/resources.h"

#include <assert.h>
#include <string.h>

/* A template of init containers has 64 KiB with all else that is in it. */
#define NAMES_MAX_BYTES (64 << 10)

/* The array under `key`, made if it is not there. */
static struct json *array_at(struct json *object, const char *key)
{
    struct json *array = json_get(object, key);
    if (!json_is_array(array)) {
        array = json_new_array();
        json_set(object, key, array);
    }
    return array;
}

/* pod_build and defaults_apply add behind what the template has, so what the written container
 * lacks is at the end of each list. */
static void add_to_container(struct json *written, const struct container *container)
{
    struct json *env = array_at(written, "env");
    for (size_t i = json_array_count(env); i < container->env_count; i++)
        json_append(env, json_texts_of("name", container->env[i].name, "value",
                                       container->env[i].value, NULL));
    for (size_t i = json_array_count(json_get(written, "ports")); i < container->port_count; i++) {
        const struct port *port = &container->ports[i];
        json_append(array_at(written, "ports"),
                    json_object_of("name", json_new_text(port->name), "containerPort",
                                   json_new_integer(port->number), "protocol",
                                   json_new_text(port->protocol), NULL));
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
static struct json *sizes_of(const struct json *all)
{
    static const char *const names[] = {"cpu", "memory", "ephemeral-storage"};
    struct json *sizes = json_new_object();
    for (size_t i = 0; i < array_length(names); i++)
        json_set(sizes, names[i], json_clone(json_get(all, names[i])));
    return sizes;
}

/* Our own containers that do not say what they ask for ask for as much as container `pytorch`. What
 * a namespace allows to that one it allows to them, the pod's QoS class stays what the user made
 * it, and nothing more is reserved: of init containers only the most counts. But for a
 * sidecar (KEP-753), which asks beside the others all the time. */
static void size_init_containers(struct json *init_containers, const struct json *containers)
{
    const struct json *main = NULL;
    for (size_t i = 0; i < json_array_count(containers); i++) {
        const struct json *container = json_at(containers, i);
        const char *name = json_as_text(json_get(container, "name"));
        if (name && strcmp(name, API_CONTAINER_NAME) == 0)
            main = json_get(container, "resources");
    }
    for (size_t i = 0; i < json_array_count(init_containers) && main; i++) {
        struct json *container = json_at(init_containers, i);
        const char *restart = json_as_text(json_get(container, "restartPolicy"));
        bool is_sidecar = restart && strcmp(restart, "Always") == 0;
        if (!is_sidecar && !json_get(container, "resources"))
            json_set(container, "resources",
                     json_object_of("limits", sizes_of(json_get(main, "limits")), "requests",
                                    sizes_of(json_get(main, "requests")), NULL));
    }
}

static struct json *object_at(struct json *object, const char *key)
{
    struct json *inner = json_get(object, key);
    if (!json_is_object(inner)) {
        inner = json_new_object();
        json_set(object, key, inner);
    }
    return inner;
}

/* The terms of a selector are alternatives, and the requirements of a term must all hold. So each
 * term gets the nodes; an empty one, which no node matches, stays so. Nodes are told by their
 * names, one a requirement, as the API asks of metadata.name: the label of the host name may be
 * another. A pod that names its node is given to it by no scheduler, and its kubelet would refuse
 * it. */
static void avoid_nodes(struct json *spec, const struct strings *nodes)
{
    if (!nodes->count || json_get(spec, "nodeName"))
        return;
    struct json *terms = array_at(object_at(object_at(object_at(spec, "affinity"), "nodeAffinity"),
                                            "requiredDuringSchedulingIgnoredDuringExecution"),
                                  "nodeSelectorTerms");
    if (!json_array_count(terms))
        json_append(terms, json_object_of("matchFields", json_new_array(), NULL));
    for (size_t i = 0; i < json_array_count(terms); i++) {
        struct json *term = json_at(terms, i);
        for (size_t k = 0; k < nodes->count && json_object_count(term); k++) {
            struct json *names = json_new_array();
            json_append(names, json_new_text(nodes->items[k]));
            json_append(array_at(term, "matchFields"),
                        json_object_of("key", json_new_text("metadata.name"), "operator",
                                       json_new_text("NotIn"), "values", names, NULL));
        }
    }
}

static void append_unless_there(struct json *array, struct json *value)
{
    const struct json *item;
    json_each_item(item, array) {
        if (json_is_equal(item, value)) {
            json_free(value);
            return;
        }
    }
    json_append(array, value);
}

/* Lists grow, maps get what they lack: `placed` was made so that it is in conflict with nothing. */
static void add_placement(struct json *object, const char *placed)
{
    static const struct {
        const char *part, *field;
        bool of_maps;
    } rows[] = {{"spec", "nodeSelector", true},
                {"spec", "tolerations", false},
                {"spec", "schedulingGates", false},
                {"metadata", "labels", true},
                {"metadata", "annotations", true}};
    struct json *fields = placed ? json_parse_text(placed, JSON_STRICT, NULL) : NULL;
    for (size_t i = 0; i < array_length(rows); i++) {
        struct json *from = json_get(fields, rows[i].field), *into = json_get(object, rows[i].part);
        struct json *member;
        if (rows[i].of_maps && json_object_count(from)) {
            into = object_at(into, rows[i].field);
            json_each_member(member, from) {
                if (!json_get(into, json_key(member)))
                    json_set(into, json_key(member), json_clone(member));
            }
        } else if (json_array_count(from)) {
            into = array_at(into, rows[i].field);
            json_each_item(member, from) {
                append_unless_there(into, json_clone(member));
            }
        }
    }
    json_free(fields);
}

static struct json *pod_spec(const struct pod_spec *pod, const struct json *init_containers)
{
    struct json *spec = json_clone(json_get(pod->raw, "spec"));
    struct json *containers = json_get(spec, "containers");
    for (size_t i = 0; i < pod->container_count; i++)
        add_to_container(json_at(containers, i), &pod->containers[i]);
    if (json_array_count(init_containers)) {
        struct json *copy = json_clone(init_containers);
        size_init_containers(copy, containers);
        while (json_array_count(copy))
            json_append(array_at(spec, "initContainers"), json_take_at(copy, 0));
        json_free(copy);
    }
    avoid_nodes(spec, &pod->avoided);
    json_set(spec, "restartPolicy", json_new_text(restart_policy(pod->restart)));
    if (pod->scheduler_name)
        json_set(spec, "schedulerName", json_new_text(pod->scheduler_name));
    return spec;
}

/* By this the ends of our own containers are told from those of the user's. */
static void annotate_init_containers(struct json *metadata, const struct json *init_containers)
{
    auto_str struct str names;
    str_init(&names, NAMES_MAX_BYTES);
    for (size_t i = 0; i < json_array_count(init_containers); i++) {
        const struct json *name = json_get(json_at(init_containers, i), "name");
        str_printf(&names, "%s%s", i ? "," : "", json_as_text(name));
    }
    if (!names.length || strcmp(str_text(&names), INIT_CONTAINER_NAME) == 0)
        return;
    if (!json_get(metadata, "annotations"))
        json_set(metadata, "annotations", json_new_object());
    json_set(json_get(metadata, "annotations"), ANNOTATION_INIT_CONTAINERS,
             json_new_text(str_text(&names)));
}

struct json *manifest_pod(const struct job *job, const struct pod_spec *pod,
                          const struct json *init_containers)
{
    assert(pod->raw);
    struct json *object =
        manifest_object("v1", "Pod", pod->name, job, &pod->labels, &pod->annotations);
    struct json *metadata = json_get(object, "metadata");
    const struct json *finalizers = json_get(json_get(pod->raw, "metadata"), "finalizers");
    if (json_array_count(finalizers))
        json_set(metadata, "finalizers", json_clone(finalizers));
    annotate_init_containers(metadata, init_containers);
    json_set(object, "spec", pod_spec(pod, init_containers));
    add_placement(object, pod->placed);
    return object;
}
