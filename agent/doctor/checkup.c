#include "agent/doctor/checkup.h"

#include "agent/doctor/checkup_internal.h"
#include "base/contract.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define GIB (1024.0 * 1024 * 1024)

const char *check_status_name(enum check_status status)
{
    static const char *const names[] = {"ok", "warning", "missing", "too old", "broken"};
    return names[status];
}

struct check_row *checkup_add(struct checkup *c, enum check_status status, const char *what,
                              const char *format, ...)
{
    static struct check_row beyond; /* the rows are enough for what is added */
    struct check_row *row = c->count < CHECKUP_ROWS ? &c->rows[c->count++] : &beyond;
    va_list values;
    memset(row, 0, sizeof *row);
    row->status = status;
    snprintf(row->what, sizeof row->what, "%s", what);
    va_start(values, format);
    vsnprintf(row->found, sizeof row->found, format, values);
    va_end(values);
    return row;
}

void checkup_more(struct check_row *row, const char *format, ...)
{
    size_t length = strlen(row->found);
    va_list values;
    va_start(values, format);
    vsnprintf(row->found + length, sizeof row->found - length, format, values);
    va_end(values);
}

void checkup_explain(struct check_row *row, const char *means, const char *format, ...)
{
    va_list values;
    snprintf(row->means, sizeof row->means, "%s", means);
    va_start(values, format);
    vsnprintf(row->mend, sizeof row->mend, format, values);
    va_end(values);
}

const char *checkup_reason(const struct library_facts *library, char out[CHECK_REASON_BYTES])
{
    const char *text = library->why.msg;
    size_t name = strlen(library->name);
    if (strncmp(text, library->name, name) == 0 && strncmp(text + name, ": ", 2) == 0)
        text += name + 2; /* the row has it */
    size_t length = library->why.code == ERR_NOT_FOUND ? strcspn(text, ":") : strlen(text);
    snprintf(out, CHECK_REASON_BYTES, "%.*s", (int)length, text);
    return out;
}

/* ---- what training needs beside GPUs ---- */

static void check_memory_of_host(const struct doctor_facts *f, bool with_gpus, struct checkup *c)
{
    bool shares = with_gpus && f->survey.gpus > 1;
    struct check_row *row =
        checkup_add(c, CHECK_OK, "CPU", "%d core%s", f->cores, f->cores == 1 ? "" : "s");
    if (f->memory_bytes < INT64_MAX)
        checkup_more(row, ", %.1f GiB of memory left (%s)", (double)f->memory_bytes / GIB,
                     f->memory_by);
    if (f->shm_bytes < 0)
        row = checkup_add(c, shares ? CHECK_WARNING : CHECK_OK, "shared memory", "no /dev/shm");
    else
        row = checkup_add(c, shares && (double)f->shm_bytes < GIB ? CHECK_WARNING : CHECK_OK,
                          "shared memory", "/dev/shm has %.0f MiB",
                          (double)f->shm_bytes / (1024.0 * 1024));
    if (row->status != CHECK_OK)
        checkup_explain(row, "NCCL may find no room for its buffers between the GPUs of a node",
                        "in a pod: an emptyDir with medium: Memory at /dev/shm; in Docker: "
                        "--shm-size=1g");
}

static void check_limits(const struct doctor_facts *f, struct checkup *c)
{
    const int64_t own_files = 256; /* data, checkpoints, logs, libraries */
    struct check_row *row;
    if (f->locked_bytes < 0)
        checkup_add(c, CHECK_OK, "locked memory", "no limit");
    else {
        row = checkup_add(c, f->has_infiniband ? CHECK_WARNING : CHECK_OK, "locked memory",
                          "at most %lld KiB", (long long)f->locked_bytes / 1024);
        if (f->has_infiniband)
            checkup_explain(row, "InfiniBand and EFA lock their buffers: NCCL may not start there",
                            "raise the limit: ulimit -l unlimited; in Docker: --ulimit memlock=-1");
    }
    bool are_few = f->open_files < f->world_size + own_files;
    row = checkup_add(c, are_few ? CHECK_WARNING : CHECK_OK, "open files", "at most %lld",
                      (long long)f->open_files);
    if (are_few)
        checkup_explain(row, "rank 0 has a connection to every other rank",
                        "raise the hard limit: ulimit -Hn %lld or more",
                        (long long)(f->world_size + own_files));
}

static void check_rendezvous(const struct doctor_facts *f, struct checkup *c)
{
    struct check_row *row;
    if (f->no_topology.code) {
        row = checkup_add(c, CHECK_BROKEN, "rendezvous", "%s", f->no_topology.msg);
        row->is_fatal = true;
        checkup_explain(row, "the environment describes no job", "correct that variable");
    } else if (f->world_size == 1) {
        checkup_add(c, CHECK_OK, "rendezvous", "one process: no other is met");
    } else if (f->no_interface.code == ERR_NOT_FOUND) {
        row = checkup_add(c, CHECK_WARNING, "rendezvous", "%s", f->no_interface.msg);
        checkup_explain(row, "ranks wait until rank 0's host has an address",
                        "is MASTER_ADDR the name of the master's service?");
    } else if (f->no_interface.code) {
        row = checkup_add(c, CHECK_MISSING, "rendezvous", "%s", f->no_interface.msg);
        row->is_fatal = true;
        checkup_explain(row, "the other ranks cannot reach this one",
                        "name an interface of this machine in GLOO_SOCKET_IFNAME, or none");
    } else {
        checkup_add(c, CHECK_OK, "rendezvous", "%s%s at %s, with rank 0 at %s",
                    f->interface[0] ? "interface " : "the interface with the route to rank 0",
                    f->interface, f->address, f->master);
    }
}

void checkup_make(const struct doctor_facts *f, struct checkup *ret)
{
    ret->count = 0;
    ret->uses_gpus = checkup_gpus(f, ret);
    checkup_libraries(f, ret);
    check_memory_of_host(f, ret->uses_gpus, ret);
    check_limits(f, ret);
    check_rendezvous(f, ret);
    ret->can_train = true;
    for (int i = 0; i < ret->count; i++)
        ret->can_train &= !ret->rows[i].is_fatal;
}
