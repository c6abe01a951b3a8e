#include "agent/telemetry/wandb_record.h"

#include "agent/telemetry/protobuf.h"
#include "base/contract.h"
#include "base/mem.h"

#include <string.h>
#include <zlib.h>

/* LevelDB's log format: blocks of 32 KiB, frames with CRC, length and type that never cross a
 * block's end. A reader finds the next frame after damage. */
enum { BLOCK_BYTES = 32768, FRAME_BYTES = 7 };
enum frame_type { FRAME_FULL = 1, FRAME_FIRST, FRAME_MIDDLE, FRAME_LAST };

/* Field numbers of wandb/proto/wandb_internal.proto. */
enum {
    RECORD_NUM = 1,
    RECORD_HISTORY = 2,
    RECORD_SUMMARY = 3,
    RECORD_RUN = 17,
    RECORD_EXIT = 18,
    RECORD_HEADER = 21,
    RECORD_FOOTER = 22,
    RUN_ID = 1,
    RUN_ENTITY = 2,
    RUN_PROJECT = 3,
    RUN_CONFIG = 4,
    RUN_GROUP = 6,
    RUN_JOB_TYPE = 7,
    RUN_DISPLAY_NAME = 8,
    RUN_NOTES = 9,
    RUN_TAGS = 10,
    RUN_HOST = 13,
    RUN_START_TIME = 17,
    TIME_SECONDS = 1,
    TIME_NANOS = 2,
    UPDATE = 1, /* an item of a configuration, a row or a summary */
    ITEM_KEY = 1,
    ITEM_VALUE_JSON = 16,
    HISTORY_STEP = 2,
    STEP_NUM = 1,
    EXIT_CODE = 1,
    EXIT_RUNTIME = 2,
    HEADER_VERSION = 1,
    VERSION_PRODUCER = 1,
    VERSION_MIN_CONSUMER = 2,
};

/* ---- frames ---- */

static void add_frame(struct wandb_log *log, enum frame_type type, const char *data, size_t bytes,
                      struct str *out)
{
    const unsigned char first = (unsigned char)type;
    /* wandb's change to LevelDB: plain CRC-32 (zlib) of type and data, where LevelDB has a masked
     * CRC-32C. */
    uLong crc = crc32(crc32(0, &first, 1), (const unsigned char *)data, (uInt)bytes);
    protobuf_little_endian(out, crc, 4);
    protobuf_little_endian(out, bytes, 2);
    protobuf_little_endian(out, first, 1);
    str_add_bytes(out, data, bytes);
    log->offset += FRAME_BYTES + (int64_t)bytes;
}

static void add_framed(struct wandb_log *log, const struct str *record, struct str *out)
{
    const char *data = str_text(record);
    size_t left = record->length;
    for (bool begins = true; begins || left > 0; begins = false) {
        size_t room = BLOCK_BYTES - (size_t)(log->offset % BLOCK_BYTES);
        /* No room for a frame's head: the block is filled with zeros, as LevelDB does. */
        if (room < FRAME_BYTES) {
            protobuf_little_endian(out, 0, (int)room);
            log->offset += (int64_t)room;
            room = BLOCK_BYTES;
        }
        size_t bytes = left < room - FRAME_BYTES ? left : room - FRAME_BYTES;
        enum frame_type type = bytes == left ? (begins ? FRAME_FULL : FRAME_LAST)
                                             : (begins ? FRAME_FIRST : FRAME_MIDDLE);
        add_frame(log, type, data, bytes, out);
        data += bytes;
        left -= bytes;
    }
}

static void add_record(struct wandb_log *log, int field, const struct str *message, struct str *out)
{
    auto_str struct str record;
    str_init(&record, WANDB_RECORD_MAX_BYTES);
    protobuf_int(&record, RECORD_NUM, ++log->records);
    protobuf_message(&record, field, message);
    add_framed(log, &record, out);
}

/* ---- messages ---- */

static void add_items(const struct wandb_item *items, int count, struct str *message)
{
    auto_str struct str item;
    str_init(&item, WANDB_RECORD_MAX_BYTES);
    for (int i = 0; i < count; i++) {
        str_clear(&item);
        protobuf_text(&item, ITEM_KEY, items[i].key);
        protobuf_text(&item, ITEM_VALUE_JSON, items[i].json);
        protobuf_message(message, UPDATE, &item);
    }
}

static void add_tags(const char *tags, struct str *message)
{
    while (*tags) {
        size_t length = strcspn(tags, ",");
        if (length > 0)
            protobuf_bytes(message, RUN_TAGS, tags, length);
        tags += length + (tags[length] == ',');
    }
}

static void add_run(const struct wandb_run *run, struct str *message)
{
    const struct {
        int field;
        const char *text;
    } texts[] = {
        {RUN_ID, run->id},       {RUN_ENTITY, run->entity},     {RUN_PROJECT, run->project},
        {RUN_GROUP, run->group}, {RUN_JOB_TYPE, run->job_type}, {RUN_DISPLAY_NAME, run->name},
        {RUN_NOTES, run->notes}, {RUN_HOST, run->host}};
    auto_str struct str config, time;
    str_init(&config, WANDB_RECORD_MAX_BYTES);
    str_init(&time, 64);
    for (size_t i = 0; i < array_length(texts); i++)
        protobuf_text(message, texts[i].field, texts[i].text);
    add_tags(run->tags, message);
    add_items(run->config, run->config_count, &config);
    protobuf_message(message, RUN_CONFIG, &config);
    protobuf_int(&time, TIME_SECONDS, run->start_wall_us / 1000000);
    protobuf_int(&time, TIME_NANOS, run->start_wall_us % 1000000 * 1000);
    protobuf_message(message, RUN_START_TIME, &time);
}

void wandb_begin(struct wandb_log *log, const struct wandb_run *run, struct str *out)
{
    auto_str struct str version, header, message;
    str_init(&version, 256);
    str_init(&header, 256);
    str_init(&message, WANDB_RECORD_MAX_BYTES);
    *log = (struct wandb_log){.offset = FRAME_BYTES}; /* the head is as long as a frame's */
    str_add(out, ":W&B");
    protobuf_little_endian(out, 0xBEE1, 2);
    protobuf_little_endian(out, 0, 1);
    protobuf_text(&version, VERSION_PRODUCER, SHOAL_VERSION);
    protobuf_text(&version, VERSION_MIN_CONSUMER, "0.10.0");
    protobuf_message(&header, HEADER_VERSION, &version);
    add_record(log, RECORD_HEADER, &header, out);
    add_run(run, &message);
    add_record(log, RECORD_RUN, &message, out);
}

void wandb_row(struct wandb_log *log, int64_t step, const struct wandb_item *items, int count,
               struct str *out)
{
    auto_str struct str message, number;
    str_init(&message, WANDB_RECORD_MAX_BYTES);
    str_init(&number, 64);
    add_items(items, count, &message);
    add_record(log, RECORD_SUMMARY, &message, out);
    protobuf_int(&number, STEP_NUM, step);
    protobuf_message(&message, HISTORY_STEP, &number);
    add_record(log, RECORD_HISTORY, &message, out);
}

void wandb_end(struct wandb_log *log, int exit_code, double runtime_s, struct str *out)
{
    auto_str struct str message;
    str_init(&message, 64);
    protobuf_int(&message, EXIT_CODE, exit_code);
    protobuf_int(&message, EXIT_RUNTIME, (int64_t)runtime_s);
    add_record(log, RECORD_EXIT, &message, out);
    str_clear(&message);
    add_record(log, RECORD_FOOTER, &message, out);
}
