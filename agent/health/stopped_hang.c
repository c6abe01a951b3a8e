#include "agent/health/stopped_hang.h"

#include "agent/launch/rank_note.h"

#include <stdio.h>
#include <string.h>

#define KEY_WHO    "hang/who" /* the note, but for the report */
#define KEY_PLACE  "hang/place"
#define KEY_REPORT "hang/report"

/* Of who they are, this is all but the location. */
static int read_note(const char *text, struct stopped_hang *ret, struct error *err)
{
    struct stopped_note note;
    struct error ignored; /* it was stopped before it had anything to tell */
    if (stopped_note_read(text, &note, err))
        return -1;
    *ret = (struct stopped_hang){.rank = note.rank};
    memcpy(ret->time, note.time, sizeof ret->time);
    if (rank_report_read(note.report, &ret->report, &ignored))
        ret->report = (struct rank_report){0};
    return 0;
}

/* A report is told under a key of its own: both together are too much for a value. */
static void write_who(const struct stopped_hang *hang, char *text, size_t bytes)
{
    struct stopped_note note = {.rank = hang->rank, .report = ""};
    auto_str struct str out;
    str_init(&out, bytes - 1);
    memcpy(note.time, hang->time, sizeof note.time);
    stopped_note_write(&note, &out);
    snprintf(text, bytes, "%s", str_text(&out));
}

void stopped_hang_tell(struct store *store, int note_fd, const char *host, const char *pod)
{
    char who[STORE_VALUE_MAX], place[STORE_VALUE_MAX], report[STORE_VALUE_MAX];
    struct stopped_hang hang;
    struct error err = {.code = ERR_NONE};
    auto_str struct str note;
    str_init(&note, RANK_NOTE_BYTES);
    rank_note_read(note_fd, RANK_NOTE_STOPPED, &note);
    if (note.length == 0 || read_note(str_text(&note), &hang, &err))
        return;
    write_who(&hang, who, sizeof who);
    rank_location_write(host, pod, place, sizeof place);
    rank_report_write(&hang.report, report, sizeof report);
    /* Who sets the first key tells the rest. */
    bool is_told = store->fn->set(store, KEY_WHO, who, &err) == 0 &&
                   store->fn->set(store, KEY_PLACE, place, &err) == 0 &&
                   store->fn->set(store, KEY_REPORT, report, &err) == 0;
    if (is_told || err.code == ERR_EXISTS)
        rank_note_write(note_fd, RANK_NOTE_STOPPED, "");
}

bool stopped_hang_hear(struct store *store, struct stopped_hang *ret)
{
    char value[STORE_VALUE_MAX];
    struct error ignored; /* there was none, or the store is gone */
    if (store->fn->get(store, KEY_WHO, 0, value, &ignored) || read_note(value, ret, &ignored))
        return false;
    if (store->fn->get(store, KEY_PLACE, 0, value, &ignored) == 0)
        rank_location_read(value, &ret->location);
    return store->fn->get(store, KEY_REPORT, 0, value, &ignored) == 0 &&
           rank_report_read(value, &ret->report, &ignored) == 0;
}

void stopped_hang_describe(const struct stopped_hang *hang, struct str *out)
{
    rank_location_describe(&hang->location, hang->rank, hang->report.pid, out);
    str_add(out, " hung in ");
    rank_report_describe(&hang->report, out);
    str_printf(out, "; all ranks of its pod were stopped, and its launcher has ended them at %s",
               hang->time);
}
