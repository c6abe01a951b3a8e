#include "operator/manifest/manifest_internal.h"

#include "base/contract.h"
#include "base/json.h"

#include <ctype.h>
#include <inttypes.h>
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

static bool is_taken(const struct json *ports, const char *name)
{
    const struct json *port;
    json_each_item(port, ports) {
        if (strcmp(json_as_text(json_get(port, "name")), name) == 0)
            return true;
    }
    return false;
}

/* "tcp-23456", and with a number behind it if someone calls another port so. */
static void name_port(const struct json *ports, const struct port *port, char *out,
                      size_t out_bytes)
{
    int length = snprintf(out, out_bytes, "%s-%" PRId32, port->protocol, port->number);
    for (char *c = out; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    for (int i = 2; is_taken(ports, out); i++)
        snprintf(out + length, out_bytes - (size_t)length, "-%d", i);
}

static struct json *service_ports(const struct service_spec *service)
{
    struct json *ports = json_new_array();
    for (size_t i = 0; i < service->port_count; i++) {
        const struct port *port = &service->ports[i];
        char name[NAME_MAX_BYTES];
        if (is_double(service, i))
            continue;
        if (*port->name && !is_taken(ports, port->name))
            snprintf(name, sizeof name, "%s", port->name);
        else
            name_port(ports, port, name, sizeof name);
        json_append(ports, json_object_of("name", json_new_text(name), "port",
                                          json_new_integer(port->number), "protocol",
                                          json_new_text(port->protocol), NULL));
    }
    return ports;
}

struct json *manifest_service(const struct job *job, const struct service_spec *service)
{
    /* Headless: the name resolves to the pod itself, so each of its ports can be reached. Peers
     * must find a pod before it is ready: a rendezvous comes before all else. */
    const struct pairs none = {.count = 0};
    struct json *object =
        manifest_object("v1", "Service", service->name, job, &service->labels, &none);
    struct json *labels = json_get(json_get(object, "metadata"), "labels");
    json_set(object, "spec",
             json_object_of("clusterIP", json_new_text("None"), "publishNotReadyAddresses",
                            json_new_bool(true), "selector", json_clone(labels), "ports",
                            service_ports(service), NULL));
    return object;
}
