#include "operator/decode/decode_template.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/decode/decode_resources.h"

void decode_pairs(struct json_reader *reader, const struct json *value, void *pairs)
{
    struct pairs *out = pairs;
    if (!json_is_object_here(reader, value))
        return;
    out->items = arena_array(reader->arena, struct pair, json_object_count(value));
    struct json *text;
    json_each_member(text, value) {
        const char *key = json_key(text);
        size_t depth = json_enter(reader, "[%s]", key);
        struct pair pair = {arena_strdup(reader->arena, key), json_read_text(reader, text)};
        if (pair.value)
            out->items[out->count++] = pair;
        json_leave(reader, depth);
    }
}

/* ---- environment ---- */

struct reference {
    const char *path; /* fieldPath or resource */
    const char *name;
    const char *key;
    bool optional;
};

static const struct json_field reference_fields[] = {
    JSON_TEXT("fieldPath", struct reference, path),
    JSON_TEXT("resource", struct reference, path),
    JSON_TEXT("name", struct reference, name),
    JSON_TEXT("volumeName", struct reference, name),
    JSON_TEXT("key", struct reference, key),
    JSON_BOOL("optional", struct reference, optional),
    JSON_KNOWN("apiVersion"),
    JSON_KNOWN("containerName"),
    JSON_KNOWN("divisor"),
    JSON_KNOWN("path"),
    JSON_END,
};

static void read_value_from(struct json_reader *reader, const struct json *value, void *env_var)
{
    static const struct {
        const char *name;
        enum env_source source;
    } sources[] = {
        {"fieldRef", ENV_FIELD},
        {"resourceFieldRef", ENV_RESOURCE},
        {"configMapKeyRef", ENV_CONFIG_MAP},
        {"secretKeyRef", ENV_SECRET},
        {"fileKeyRef", ENV_FILE},
    };
    struct env_var *out = env_var;
    for (size_t i = 0; i < array_length(sources); i++) {
        const struct json *source = json_get(value, sources[i].name);
        if (!json_is_object(source))
            continue;
        size_t depth = json_enter(reader, ".%s", sources[i].name);
        struct reference from = {.name = "", .key = ""};
        json_read(reader, source, reference_fields, &from);
        out->source = sources[i].source;
        out->optional = from.optional;
        out->value =
            from.path ? from.path : arena_printf(reader->arena, "%s/%s", from.name, from.key);
        json_leave(reader, depth);
        return;
    }
    json_problem(reader, "Required value: one of fieldRef, resourceFieldRef, configMapKeyRef, "
                         "secretKeyRef, fileKeyRef");
}

static const struct json_field env_fields[] = {
    JSON_TEXT("name", struct env_var, name),
    JSON_TEXT("value", struct env_var, value),
    JSON_CUSTOM_SAME("valueFrom", read_value_from),
    JSON_END,
};

/* ---- containers ---- */

static void read_port_number(struct json_reader *reader, const struct json *value, void *number)
{
    int64_t wide;
    if (json_read_integer(reader, value, 1, 65535, &wide))
        *(int32_t *)number = (int32_t)wide;
}

static const struct json_field port_fields[] = {
    JSON_TEXT("name", struct port, name),
    JSON_TEXT("protocol", struct port, protocol),
    JSON_CUSTOM("containerPort", struct port, number, read_port_number),
    JSON_UNUSED("hostPort"),
    JSON_UNUSED("hostIP"),
    JSON_END,
};

static void read_is_sidecar(struct json_reader *reader, const struct json *value, void *is_sidecar)
{
    *(bool *)is_sidecar = str_equal(json_as_text(value), "Always");
    json_note_unused(reader);
}

static const struct json_field container_fields[] = {
    JSON_TEXT("name", struct container, name),
    JSON_TEXT("image", struct container, image),
    JSON_TEXT("workingDir", struct container, working_dir),
    JSON_TEXTS("command", struct container, command.items, command.count),
    JSON_TEXTS("args", struct container, args.items, args.count),
    JSON_ARRAY_OF("env", struct container, env, env_count, struct env_var, env_fields),
    JSON_ARRAY_OF("ports", struct container, ports, port_count, struct port, port_fields),
    JSON_KNOWN("imagePullPolicy"),
    JSON_KNOWN("terminationMessagePath"),
    JSON_KNOWN("terminationMessagePolicy"),
    /* The operator passes the template on whole. UNUSED are the fields that `shoal run` cannot
     * enforce on one machine, and says so. */
    JSON_UNUSED("envFrom"),
    JSON_CUSTOM("resources", struct container, requests, decode_resources),
    JSON_UNUSED("resizePolicy"),
    JSON_CUSTOM("restartPolicy", struct container, is_sidecar, read_is_sidecar),
    JSON_UNUSED("restartPolicyRules"),
    JSON_UNUSED("volumeMounts"),
    JSON_UNUSED("volumeDevices"),
    JSON_UNUSED("livenessProbe"),
    JSON_UNUSED("readinessProbe"),
    JSON_UNUSED("startupProbe"),
    JSON_UNUSED("lifecycle"),
    JSON_UNUSED("securityContext"),
    JSON_UNUSED("stdin"),
    JSON_UNUSED("stdinOnce"),
    JSON_UNUSED("tty"),
    JSON_END,
};

static void read_scheduler_name(struct json_reader *reader, const struct json *value, void *name)
{
    *(const char **)name = json_read_text(reader, value);
    json_note_unused(reader);
}

static void read_priority_class(struct json_reader *reader, const struct json *value, void *name)
{
    *(const char **)name = json_as_text(value);
    json_note_unused(reader);
}

static void read_overhead(struct json_reader *reader, const struct json *value, void *overhead)
{
    decode_quantities(reader, value, overhead);
    json_note_unused(reader);
}

static const struct json_field pod_fields[] = {
    JSON_ARRAY_OF("containers", struct pod_template, containers, container_count, struct container,
                  container_fields),
    JSON_ARRAY_OF("initContainers", struct pod_template, init_containers, init_container_count,
                  struct container, container_fields),
    JSON_TEXT("restartPolicy", struct pod_template, restart_policy),
    JSON_OPTIONAL("terminationGracePeriodSeconds", struct pod_template, grace_period_s, 0,
                  INT32_MAX),
    JSON_KNOWN("dnsPolicy"),
    JSON_KNOWN("enableServiceLinks"),
    JSON_KNOWN("imagePullSecrets"),
    JSON_KNOWN("serviceAccount"),
    JSON_KNOWN("serviceAccountName"),
    JSON_UNUSED("activeDeadlineSeconds"),
    JSON_UNUSED("affinity"),
    JSON_UNUSED("automountServiceAccountToken"),
    JSON_UNUSED("dnsConfig"),
    JSON_UNUSED("ephemeralContainers"),
    JSON_UNUSED("hostAliases"),
    JSON_UNUSED("hostIPC"),
    JSON_UNUSED("hostNetwork"),
    JSON_UNUSED("hostPID"),
    JSON_UNUSED("hostUsers"),
    JSON_UNUSED("hostname"),
    JSON_UNUSED("hostnameOverride"),
    JSON_UNUSED("nodeName"),
    JSON_UNUSED("nodeSelector"),
    JSON_UNUSED("os"),
    JSON_CUSTOM("overhead", struct pod_template, overhead, read_overhead),
    JSON_UNUSED("preemptionPolicy"),
    JSON_UNUSED("priority"),
    JSON_CUSTOM("priorityClassName", struct pod_template, priority_class, read_priority_class),
    JSON_UNUSED("readinessGates"),
    JSON_UNUSED("resourceClaims"),
    JSON_UNUSED("resources"),
    JSON_UNUSED("runtimeClassName"),
    JSON_CUSTOM("schedulerName", struct pod_template, scheduler_name, read_scheduler_name),
    JSON_UNUSED("schedulingGates"),
    JSON_UNUSED("schedulingGroup"),
    JSON_UNUSED("securityContext"),
    JSON_UNUSED("setHostnameAsFQDN"),
    JSON_UNUSED("shareProcessNamespace"),
    JSON_UNUSED("subdomain"),
    JSON_UNUSED("tolerations"),
    JSON_UNUSED("topologySpreadConstraints"),
    JSON_UNUSED("volumes"),
    JSON_END,
};

static const struct json_field metadata_fields[] = {
    JSON_CUSTOM("labels", struct pod_template, labels, decode_pairs),
    JSON_CUSTOM("annotations", struct pod_template, annotations, decode_pairs),
    JSON_KNOWN("creationTimestamp"),
    JSON_KNOWN("finalizers"),
    JSON_KNOWN("name"),
    JSON_KNOWN("namespace"),
    JSON_END,
};

static const struct json_field template_fields[] = {
    JSON_SAME("metadata", metadata_fields),
    JSON_SAME("spec", pod_fields),
    JSON_END,
};

/* Texts that are absent are empty from here on; core/v1's default protocol is TCP. */
static void complete(struct container *containers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct container *container = &containers[i];
        container->name = container->name ? container->name : "";
        for (size_t k = 0; k < container->env_count; k++) {
            struct env_var *var = &container->env[k];
            var->name = var->name ? var->name : "";
            var->value = var->value ? var->value : "";
        }
        for (size_t k = 0; k < container->port_count; k++) {
            struct port *port = &container->ports[k];
            port->name = port->name ? port->name : "";
            port->protocol = port->protocol ? port->protocol : "TCP";
        }
    }
}

void decode_template(struct json_reader *reader, const struct json *value, void *template_)
{
    struct pod_template *out = template_;
    if (!json_is_object_here(reader, value))
        return;
    /* The template goes into pods as it was written: fields that this version does not know come
     * through. Only what the operator itself needs is decoded. */
    out->raw = value;
    json_read(reader, value, template_fields, out);
    complete(out->containers, out->container_count);
    complete(out->init_containers, out->init_container_count);
}
