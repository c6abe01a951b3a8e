#include "operator/manifest/manifest.h"

#include "base/contract.h"

#include <ctype.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 64 /* a DNS label */

static bool same_port(const struct port *a, const struct port *b)
{
    return a->number == b->number && strcmp(a->protocol, b->protocol) == 0;
}

/* Whether another port stands for this one: one of the same number and protocol that is the
 * rendezvous port, else the first. */
static bool is_double(const struct service_spec *service, size_t at)
{
    const struct port *port = &service->ports[at];
    if (strcmp(port->name, API_PORT_NAME) == 0)
        return false;
    for (size_t i = 0; i < service->port_count; i++) {
        const struct port *other = &service->ports[i];
        if (i != at && same_port(other, port) &&
            (i < at || strcmp(other->name, API_PORT_NAME) == 0))
            return true;
    }
    return false;
}

static bool is_taken(const json_t *ports, const char *name)
{
    size_t i;
    const json_t *port;
    json_array_foreach(ports, i, port)
    {
        if (strcmp(json_string_value(json_object_get(port, "name")), name) == 0)
            return true;
    }
    return false;
}

/* "tcp-23456", and with a number behind it if someone calls another port so. */
static void name_port(const json_t *ports, const struct port *port, char *out, size_t out_bytes)
{
    int length = snprintf(out, out_bytes, "%s-%" PRId32, port->protocol, port->number);
    for (char *c = out; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    for (int i = 2; is_taken(ports, out); i++)
        snprintf(out + length, out_bytes - (size_t)length, "-%d", i);
}

static json_t *service_ports(const struct service_spec *service)
{
    json_t *ports = json_array();
    for (size_t i = 0; i < service->port_count; i++) {
        const struct port *port = &service->ports[i];
        char name[NAME_MAX_BYTES];
        if (is_double(service, i))
            continue;
        if (*port->name && !is_taken(ports, port->name))
            snprintf(name, sizeof name, "%s", port->name);
        else
            name_port(ports, port, name, sizeof name);
        json_array_append_new(ports, json_pack("{s:s, s:i, s:s}", "name", name, "port",
                                               (int)port->number, "protocol", port->protocol));
    }
    return ports;
}

struct json_t *manifest_service(const struct job *job, const struct service_spec *service)
{
    const struct pairs none = {.count = 0};
    json_t *object = manifest_object("v1", "Service", service->name, job, &service->labels, &none);
    json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");
    json_object_set_new(object, "spec",
                        json_pack("{s:s, s:b, s:o, s:o}", "clusterIP", "None",
                                  "publishNotReadyAddresses", 1, "selector", json_deep_copy(labels),
                                  "ports", service_ports(service)));
    return object;
}
