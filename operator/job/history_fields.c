#include "operator/job/history_fields.h"

#include "base/mem.h"
#include "base/str.h"
#include "operator/job/history.h"
#include "operator/job/names.h"

#include <inttypes.h>
#include <string.h>

/* clang-format off */
#define FIELD(owner, field) .member = #field, .offset = offsetof(struct owner, field)

const struct history_field history_fields[] = {
    {FIELD(history, known), .kind = HISTORY_PRESENCE},
    {FIELD(history, failures), .name = "failures", .kind = HISTORY_COUNT, .print = " failures="},
    /* also as 0: people look for it */
    {FIELD(history, restarts), .name = "restarts", .kind = HISTORY_COUNT, .print = " restarts=",
     .compares_to_failures = true, .always = true},
    {FIELD(history, rank_restarts), .name = "rankRestarts", .kind = HISTORY_COUNT},
    /* also as 0: so the CustomResourceDefinition of Shoal 0.1 is known by the first status */
    {FIELD(history, incidents), .name = "incidents", .kind = HISTORY_COUNT,
     .print = " incidents=", .compares_to_failures = true, .always = true},
    {FIELD(history, attempt), .name = "attempt", .kind = HISTORY_COUNT, .print = " attempt="},
    {FIELD(history, incident_ms), .name = "incidentTime", .kind = HISTORY_TIME},
    {FIELD(history, incidents_without_cause), .name = "incidentsWithoutCause", .kind = HISTORY_COUNT},
    {FIELD(history, formed), .name = "formed", .kind = HISTORY_COUNTS, .print = " formed="},
    {FIELD(history, replicas), .count = "replica_count", .name = "replicas",
     .kind = HISTORY_RECORDS, .print = ""},
    {FIELD(history, completed), .count = "completed_count", .name = "completed",
     .kind = HISTORY_INDICES, .print = " done:"},
    {FIELD(history, avoided), .count = "avoided_count", .name = "avoidedNodes",
     .kind = HISTORY_NODES, .print = " avoids:"},
    {FIELD(history, hardware_leaves), .name = "hardwareLeaves", .kind = HISTORY_COUNT},
    {FIELD(history, hardware_ms), .name = "hardwareTime", .kind = HISTORY_TIME},
    {FIELD(history, preempted), .name = "preemptedWorker", .kind = HISTORY_COUNT,
     .print = " preempted="},
    {FIELD(history, worker_0_ms), .name = "worker0CreationTime", .kind = HISTORY_TIME},
    {.member = NULL},
};

const struct history_field replica_history_fields[] = {
    {FIELD(replica_history, type), .name = "type", .kind = HISTORY_TYPE, .print = " "},
    {FIELD(replica_history, index), .name = "index", .kind = HISTORY_COUNT, .print = "-",
     .always = true},
    {FIELD(replica_history, uid), .name = "uid", .kind = HISTORY_TEXT, .print = ":"},
    {FIELD(replica_history, counted), .name = "counted", .kind = HISTORY_COUNT, .print = ":"},
    {FIELD(replica_history, earlier), .name = "earlier", .kind = HISTORY_COUNT, .print = "+"},
    {FIELD(replica_history, incidents), .name = "incidents", .kind = HISTORY_COUNT},
    {FIELD(replica_history, left), .name = "left", .kind = HISTORY_FLAG},
    {.member = NULL},
};
/* clang-format on */

/* The field of the struct that `owner` points to. */
#define AT(owner, field, type)    ((type *)((char *)(owner) + (field)->offset))
#define VALUE(owner, field, type) (*(const type *)((const char *)(owner) + (field)->offset))

/* ---- copying ---- */

static void copy_records(struct history *copy, const struct history *history, struct arena *arena)
{
    copy->replicas = arena_array(arena, struct replica_history, history->replica_count);
    if (history->replica_count)
        memcpy(copy->replicas, history->replicas, history->replica_count * sizeof *copy->replicas);
    for (size_t i = 0; i < history->replica_count; i++)
        for (const struct history_field *field = replica_history_fields; field->member; field++)
            if (field->kind == HISTORY_TEXT)
                *AT(&copy->replicas[i], field, const char *) =
                    arena_strdup(arena, VALUE(&history->replicas[i], field, char *));
}

static void copy_indices(struct history *copy, const struct history *history, struct arena *arena)
{
    for (int type = 0; type < REPLICA_TYPES; type++) {
        size_t count = (size_t)history->completed_count[type];
        copy->completed[type] = arena_array(arena, bool, count);
        if (count)
            memcpy(copy->completed[type], history->completed[type], count * sizeof(bool));
    }
}

static void copy_nodes(struct history *copy, const struct history *history, struct arena *arena)
{
    copy->avoided = arena_array(arena, struct avoided_node, history->avoided_count);
    for (size_t i = 0; i < history->avoided_count; i++)
        copy->avoided[i] = (struct avoided_node){arena_strdup(arena, history->avoided[i].name),
                                                 history->avoided[i].since_ms};
}

struct history history_copy(const struct history *history, struct arena *arena)
{
    struct history copy = *history; /* all that points to nothing */
    for (const struct history_field *field = history_fields; field->member; field++) {
        if (field->kind == HISTORY_RECORDS)
            copy_records(&copy, history, arena);
        else if (field->kind == HISTORY_INDICES)
            copy_indices(&copy, history, arena);
        else if (field->kind == HISTORY_NODES)
            copy_nodes(&copy, history, arena);
    }
    return copy;
}

/* ---- comparing ---- */

static bool indices_equal(const struct history *a, const struct history *b, enum replica_type type)
{
    int32_t count = a->completed_count[type] > b->completed_count[type] ? a->completed_count[type]
                                                                        : b->completed_count[type];
    for (int32_t i = 0; i < count; i++)
        if (history_is_complete(a, type, i) != history_is_complete(b, type, i))
            return false;
    return true;
}

static bool fields_equal(const struct history_field *fields, const void *a, const void *b);

static bool records_equal(const struct history *a, const struct history *b)
{
    bool equal = a->replica_count == b->replica_count;
    for (size_t i = 0; i < a->replica_count && equal; i++)
        equal = fields_equal(replica_history_fields, &a->replicas[i], &b->replicas[i]);
    return equal;
}

static bool nodes_equal(const struct history *a, const struct history *b)
{
    bool equal = a->avoided_count == b->avoided_count;
    for (size_t i = 0; i < a->avoided_count && equal; i++)
        equal = a->avoided[i].since_ms == b->avoided[i].since_ms &&
                strcmp(a->avoided[i].name, b->avoided[i].name) == 0;
    return equal;
}

static bool field_equal(const struct history_field *field, const void *a, const void *b)
{
    switch (field->kind) {
    case HISTORY_PRESENCE:
    case HISTORY_FLAG:
        return VALUE(a, field, bool) == VALUE(b, field, bool);
    case HISTORY_COUNT:
        return VALUE(a, field, int32_t) == VALUE(b, field, int32_t);
    case HISTORY_TIME:
        return VALUE(a, field, int64_t) == VALUE(b, field, int64_t);
    case HISTORY_TEXT:
        return strcmp(VALUE(a, field, char *), VALUE(b, field, char *)) == 0;
    case HISTORY_TYPE:
        return VALUE(a, field, enum replica_type) == VALUE(b, field, enum replica_type);
    case HISTORY_COUNTS:
        return memcmp(&VALUE(a, field, int32_t), &VALUE(b, field, int32_t),
                      REPLICA_TYPES * sizeof(int32_t)) == 0;
    case HISTORY_INDICES:
        return indices_equal(a, b, REPLICA_MASTER) && indices_equal(a, b, REPLICA_WORKER);
    case HISTORY_RECORDS:
        return records_equal(a, b);
    case HISTORY_NODES:
        return nodes_equal(a, b);
    }
    return false;
}

static bool fields_equal(const struct history_field *fields, const void *a, const void *b)
{
    bool equal = true;
    for (const struct history_field *field = fields; field->member && equal; field++)
        equal = field_equal(field, a, b);
    return equal;
}

bool history_equal(const struct history *a, const struct history *b)
{
    return fields_equal(history_fields, a, b);
}

/* ---- printing ---- */

/* By their rows, one after the other: " worker-0:UID:1+0". */
static void print_record(const struct replica_history *replica, struct str *out)
{
    for (const struct history_field *field = replica_history_fields; field->member; field++) {
        if (!field->print)
            continue;
        str_add(out, field->print);
        if (field->kind == HISTORY_TYPE)
            str_add(out, names_replica_label(VALUE(replica, field, enum replica_type)));
        else if (field->kind == HISTORY_TEXT)
            str_add(out, VALUE(replica, field, char *));
        else if (field->kind == HISTORY_COUNT)
            str_printf(out, "%" PRId32, VALUE(replica, field, int32_t));
    }
}

static void print_indices(const struct history_field *field, const struct history *history,
                          struct str *out)
{
    for (int type = 0; type < REPLICA_TYPES; type++)
        for (int32_t i = 0; i < history->completed_count[type]; i++)
            if (history->completed[type][i])
                str_printf(out, "%s%s-%" PRId32, field->print, names_replica_label(type), i);
}

static void print_counts(const struct history_field *field, const int32_t counts[REPLICA_TYPES],
                         struct str *out)
{
    if (counts[REPLICA_MASTER] || counts[REPLICA_WORKER])
        str_printf(out, "%s%" PRId32 "+%" PRId32, field->print, counts[REPLICA_MASTER],
                   counts[REPLICA_WORKER]);
}

void history_print(const struct history *history, struct str *out)
{
    for (const struct history_field *field = history_fields; field->member; field++) {
        if (!field->print)
            continue;
        if (field->kind == HISTORY_COUNT) {
            int32_t count = VALUE(history, field, int32_t);
            if (count != (field->compares_to_failures ? history->failures : 0))
                str_printf(out, "%s%" PRId32, field->print, count);
        } else if (field->kind == HISTORY_COUNTS) {
            print_counts(field, &VALUE(history, field, int32_t), out);
        } else if (field->kind == HISTORY_INDICES) {
            print_indices(field, history, out);
        } else if (field->kind == HISTORY_RECORDS) {
            for (size_t i = 0; i < history->replica_count; i++)
                print_record(&history->replicas[i], out);
        } else if (field->kind == HISTORY_NODES) {
            for (size_t i = 0; i < history->avoided_count; i++)
                str_printf(out, "%s%s", field->print, history->avoided[i].name);
        }
    }
}
