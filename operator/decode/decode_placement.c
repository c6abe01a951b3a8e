#include "operator/decode/decode_placement.h"

#include "base/json.h"
#include "base/mem.h"
#include "operator/job/names.h"
#include "operator/job/resources.h"

#include <string.h>

/* What is being put together for one replica type. */
struct placing {
    struct arena *arena;
    const struct json *template_; /* of the job */
    struct json *fields;
    const char *obstacle; /* the first one; NULL: none */
};

static struct json *field_at(struct placing *placing, const char *field, struct json *fresh)
{
    if (json_get(placing->fields, field))
        json_free(fresh);
    else
        json_set(placing->fields, field, fresh);
    return json_get(placing->fields, field);
}

/* What the template has of a map already. */
static const struct json *of_template(const struct placing *placing, const char *field)
{
    const char *part = strcmp(field, "nodeSelector") == 0 ? "spec" : "metadata";
    return json_get(json_get(placing->template_, part), field);
}

/* Kueue allows additions alone: a key with two values is a mistake of who admits. */
static void add_map(struct placing *placing, const char *field, const struct json *from,
                    const char *who)
{
    struct json *into = field_at(placing, field, json_new_object()), *member;
    json_each_member(member, from) {
        const char *key = json_key(member);
        const struct json *had = json_get(into, key);
        had = had ? had : json_get(of_template(placing, field), key);
        if (had && !json_is_equal(had, member) && !placing->obstacle)
            placing->obstacle = arena_printf(
                placing->arena, "%s sets %s \"%s\" to \"%s\", and it is \"%s\" already", who, field,
                key, json_as_text(member) ? json_as_text(member) : "",
                json_as_text(had) ? json_as_text(had) : "");
        json_set(into, key, json_clone(member));
    }
}

static void add_list(struct placing *placing, const char *field, const struct json *from)
{
    struct json *into = field_at(placing, field, json_new_array()), *item;
    json_each_item(item, from) {
        json_append(into, json_clone(item));
    }
}

static void add_flavor(struct placing *placing, const struct flavor *flavor)
{
    struct json *labels = json_parse_text(*flavor->node_labels ? flavor->node_labels : NULL,
                                          JSON_STRICT, NULL),
                *tolerations = json_parse_text(*flavor->tolerations ? flavor->tolerations : NULL,
                                               JSON_STRICT, NULL);
    add_map(placing, "nodeSelector", labels,
            arena_printf(placing->arena, "ResourceFlavor %s", flavor->name));
    add_list(placing, "tolerations", tolerations);
    json_free(labels);
    json_free(tolerations);
}

static void add_updates(struct placing *placing, const char *text)
{
    static const char *const maps[] = {"nodeSelector", "labels", "annotations"};
    struct json *updates = json_parse_text(*text ? text : NULL, JSON_STRICT, NULL), *update;
    json_each_item(update, updates) {
        const char *check = json_as_text(json_get(update, "name"));
        const char *who =
            arena_printf(placing->arena, "admission check %s", check ? check : "without a name");
        for (size_t i = 0; i < array_length(maps); i++)
            add_map(placing, maps[i], json_get(update, maps[i]), who);
        add_list(placing, "tolerations", json_get(update, "tolerations"));
    }
    json_free(updates);
}

/* Kueue finds the pods of a Workload by these, and takes the gate away when it has given each pod
 * its place. People find them by their queues. */
static void add_marks(struct placing *placing, const struct workload *workload,
                      enum replica_type type)
{
    struct json *annotations = field_at(placing, "annotations", json_new_object());
    struct json *labels = field_at(placing, "labels", json_new_object());
    json_set_text(labels, LABEL_POD_SET, names_replica_label(type));
    json_set_text(labels, LABEL_LOCAL_QUEUE, workload->spec.queue);
    if (names_is_label(workload->cluster_queue)) /* others' names may be none of a label */
        json_set_text(labels, LABEL_CLUSTER_QUEUE, workload->cluster_queue);
    json_set_text(annotations, ANNOTATION_WORKLOAD, workload->name);
    if (!workload->assigned[type].topology)
        return;
    json_append(field_at(placing, "schedulingGates", json_new_array()),
                json_texts_of("name", GATE_TOPOLOGY, NULL));
    if (workload->assigned[type].topology_implied)
        json_set_text(annotations, ANNOTATION_TOPOLOGY "unconstrained-topology", "true");
}

const char *decode_placement(const struct workload *workload, enum replica_type type,
                             const struct json *template_, const struct flavor *const *flavors,
                             size_t flavor_count, struct arena *arena, const char **ret_obstacle)
{
    struct placing placing = {.arena = arena,
                              .template_ = template_,
                              .fields = json_new_object(),
                              .obstacle = *ret_obstacle};
    for (size_t i = 0; i < flavor_count; i++)
        add_flavor(&placing, flavors[i]);
    add_updates(&placing, workload->assigned[type].updates);
    add_marks(&placing, workload, type);
    auto_free char *text = json_print(placing.fields, JSON_COMPACT);
    json_free(placing.fields);
    *ret_obstacle = placing.obstacle;
    return arena_strdup(arena, text);
}
