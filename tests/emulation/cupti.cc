/* CUPTI as tests emulate it: kernels, copies and fills that ran are records in buffers of whoever
 * registered, on a clock of their own. Ends the process where its rules are broken. The setting
 * cupti: "none", there is no such library; "denied", it may not be used; "old driver", it does not
 * start. */
#include "kernels/cuda/cupti_api.h"
#include "tests/emulation/emulation.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <set>

namespace
{

constexpr size_t RECORD_BYTES = 192; /* as long as the newest kernel's, or longer */
constexpr int UNKNOWN_KIND = 1, NO_MORE = 12;

std::mutex lock;
cupti_request *request;
cupti_complete *complete;
std::set<int> enabled;
uint8_t *buffer;
size_t buffer_bytes, valid_bytes;

void must(bool holds, const char *rule)
{
    if (holds)
        return;
    fprintf(stderr, "emulated CUPTI: %s\n", rule);
    abort();
}

void give_back()
{
    if (buffer)
        complete(nullptr, 0, buffer, buffer_bytes, valid_bytes);
    buffer = nullptr;
}

/* Room for a record; NULL: it is dropped. */
void *add_record(int kind)
{
    if (!enabled.count(kind))
        return nullptr;
    if (buffer && valid_bytes + RECORD_BYTES > buffer_bytes)
        give_back();
    if (!buffer) {
        size_t most = 99;
        request(&buffer, &buffer_bytes, &most);
        must(!buffer || ((uintptr_t)buffer % 8 == 0 && buffer_bytes >= RECORD_BYTES && most == 0),
             "a buffer is 8-byte aligned and has room");
        valid_bytes = 0;
    }
    if (!buffer)
        return nullptr;
    void *record = buffer + valid_bytes;
    memset(record, 0xee, RECORD_BYTES);
    memcpy(record, &kind, sizeof kind);
    valid_bytes += RECORD_BYTES;
    return record;
}

uint32_t id_of(const void *stream)
{
    return (uint32_t)((uintptr_t)stream >> 4);
}

} // namespace

/* Wall clock, as the real one's is on Linux. */
uint64_t emulation::cupti_now()
{
    timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void emulation::cupti_kernel(const char *name, cudaStream_t stream, uint64_t begin)
{
    std::lock_guard held(lock);
    auto *record = (struct ::cupti_kernel *)add_record(CUPTI_KERNEL);
    if (!record)
        return;
    record->start = begin;
    record->end = cupti_now();
    record->stream = id_of(stream);
    record->name = name;
}

void emulation::cupti_copy(size_t bytes, cudaStream_t stream, uint64_t begin)
{
    std::lock_guard held(lock);
    auto *record = (struct ::cupti_move *)add_record(CUPTI_MEMCPY);
    if (!record)
        return;
    record->copy = CUPTI_ON_DEVICE;
    record->bytes = bytes;
    record->start = begin;
    record->end = cupti_now();
    record->stream = id_of(stream);
}

extern "C" {

int cuptiGetVersion(uint32_t *version)
{
    *version = 130001;
    return CUPTI_SUCCESS;
}

int cuptiGetTimestamp(uint64_t *ns)
{
    *ns = emulation::cupti_now();
    return CUPTI_SUCCESS;
}

int cuptiGetResultString(int result, const char **text)
{
    *text = result == CUPTI_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
            : result == CUPTI_NOT_INITIALIZED       ? "CUPTI_ERROR_NOT_INITIALIZED"
                                                    : "CUPTI_ERROR_UNKNOWN";
    return CUPTI_SUCCESS;
}

int cuptiGetStreamIdEx(void *context, void *stream, uint8_t per_thread, uint32_t *id)
{
    must(!context && !per_thread, "streams are looked for in any context");
    *id = id_of(stream);
    return CUPTI_SUCCESS;
}

int cuptiActivityRegisterCallbacks(cupti_request *new_request, cupti_complete *new_complete)
{
    if (emulation::option("cupti", "") == "old driver")
        return CUPTI_NOT_INITIALIZED;
    must(!request && new_request && new_complete, "callbacks are registered once");
    request = new_request;
    complete = new_complete;
    return CUPTI_SUCCESS;
}

int cuptiActivityEnable(int kind)
{
    std::lock_guard held(lock);
    must(request, "callbacks are registered before anything is enabled");
    if (emulation::option("cupti", "") == "denied")
        return CUPTI_INSUFFICIENT_PRIVILEGES;
    if (kind != CUPTI_KERNEL && kind != CUPTI_MEMCPY && kind != CUPTI_MEMSET)
        return UNKNOWN_KIND;
    enabled.insert(kind);
    return CUPTI_SUCCESS;
}

int cuptiActivityDisable(int kind)
{
    std::lock_guard held(lock);
    enabled.erase(kind);
    return CUPTI_SUCCESS;
}

int cuptiActivityFlushAll(uint32_t flag)
{
    std::lock_guard held(lock);
    must(flag == CUPTI_FLUSH_FORCED, "buffers that are not full are asked for");
    must(enabled.empty(), "no record comes after those that are asked for");
    give_back();
    return CUPTI_SUCCESS;
}

int cuptiActivityGetNextRecord(uint8_t *records, size_t valid, int32_t **record)
{
    uint8_t *next = *record ? (uint8_t *)*record + RECORD_BYTES : records;
    if (next + RECORD_BYTES > records + valid)
        return NO_MORE;
    *record = (int32_t *)next;
    return CUPTI_SUCCESS;
}

} // extern "C"
