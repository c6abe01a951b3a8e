#include "agent/telemetry/trace_json.h"

#include "base/json_text.h"

#include <stdio.h>
#include <stdlib.h>

/* C++'s own (Itanium ABI): the name as the source has it, from malloc; NULL if it is
 * none of C++. */
char *__cxa_demangle(const char *name, char *buffer, size_t *length, int *ret_status);

static void add_us(int64_t ns, struct str *out)
{
    int64_t away = ns < 0 ? -ns : ns;
    str_printf(out, "%s%lld.%03d", ns < 0 ? "-" : "", (long long)(away / 1000), (int)(away % 1000));
}

static void add_metadata(const struct trace_json *t, const char *what, struct trace_row row,
                         const char *name)
{
    str_printf(t->out,
               "{\"ph\":\"M\",\"name\":\"%s_name\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":", what,
               row.pid, row.tid);
    json_text(name, t->out);
    str_printf(t->out,
               "}},\n{\"ph\":\"M\",\"name\":\"%s_sort_index\",\"pid\":%d,\"tid\":%d,"
               "\"args\":{\"sort_index\":%d}}",
               what, row.pid, row.tid, row.tid ? row.tid : row.pid);
}

void trace_json_begin(const struct trace_json *t, int rank, int world_size, const char *device,
                      int64_t memory_bytes, int pid)
{
    char name[64];
    snprintf(name, sizeof name, "rank %d: host", rank);
    str_printf(t->out,
               "{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":%lld,\n"
               "\"deviceProperties\":[{\"id\":0,\"name\":",
               (long long)t->base_ns);
    json_text(device, t->out);
    str_printf(t->out,
               ",\"totalGlobalMem\":%lld}],\n"
               "\"distributedInfo\":{\"rank\":%d,\"world_size\":%d},\n\"traceEvents\":[\n",
               (long long)memory_bytes, rank, world_size);
    add_metadata(t, "process", (struct trace_row){pid, 0}, name);
}

void trace_json_process(const struct trace_json *t, int pid, const char *name)
{
    str_add(t->out, ",\n");
    add_metadata(t, "process", (struct trace_row){pid, 0}, name);
}

void trace_json_thread(const struct trace_json *t, struct trace_row row, const char *name)
{
    str_add(t->out, ",\n");
    add_metadata(t, "thread", row, name);
}

/* Names of GPU kernels are as the linker has them. */
static void add_name(const char *name, struct str *out)
{
    int status;
    char *plain =
        name[0] == '_' && name[1] == 'Z' ? __cxa_demangle(name, NULL, NULL, &status) : NULL;
    json_text(plain ? plain : name, out);
    free(plain);
}

static const char *add_arg(const char *between, const char *name, int64_t value, struct str *out)
{
    if (value)
        str_printf(out, "%s\"%s\":%lld", between, name, (long long)value);
    return value ? "," : between;
}

void trace_json_span(const struct trace_json *t, const struct trace_span *s)
{
    str_printf(t->out, ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":", s->category);
    add_name(s->name, t->out);
    str_printf(t->out, ",\"pid\":%d,\"tid\":%d,\"ts\":", s->row.pid, s->row.tid);
    add_us(s->begin_ns - t->base_ns, t->out);
    str_add(t->out, ",\"dur\":");
    add_us(s->end_ns - s->begin_ns, t->out);
    str_add(t->out, ",\"args\":{");
    const char *between = add_arg("", "bytes", s->bytes, t->out);
    between = add_arg(between, "number", s->number, t->out);
    add_arg(between, "ranks", s->ranks, t->out);
    str_add(t->out, "}}");
}

void trace_json_bytes(const struct trace_json *t, int pid, const char *name, int64_t at_ns,
                      int64_t bytes)
{
    str_add(t->out, ",\n{\"ph\":\"C\",\"name\":");
    json_text(name, t->out);
    str_printf(t->out, ",\"pid\":%d,\"ts\":", pid);
    add_us(at_ns - t->base_ns, t->out);
    str_printf(t->out, ",\"args\":{\"bytes\":%lld}}", (long long)bytes);
}

void trace_json_end(const struct trace_json *t)
{
    str_add(t->out, "\n]}\n");
}
