#include "agent/health/stopped_hang.h"

#include "agent/launch/rank_note.h"

#include <stdio.h>

#define KEY_WHO    "hang/who" /* the note, but for the report */
#define KEY_PLACE  "hang/place"
#define KEY_REPORT "hang/report"

int stopped_hang_read(const char *text, struct stopped_hang *ret, struct error *err)
{
    struct stopped_hang hang = {0};
    struct error ignored; /* it was stopped before it had anything to tell */
    int report = 0;
    if (sscanf(text, "%d %39s%n", &hang.rank, hang.time, &report) != 2 || hang.rank < 0)
        return error_set(err, ERR_INPUT, "a note of a stopped rank that is none: %.60s", text);
    if (rank_report_read(text + report, &hang.report, &ignored))
        hang.report = (struct rank_report){0};
    *ret = hang;
    return 0;
}

void stopped_hang_tell(struct store *store, int note_fd, const char *host, const char *pod)
{
    char who[STORE_VALUE_MAX], place[STORE_VALUE_MAX], report[STORE_VALUE_MAX];
    struct stopped_hang hang;
    struct error err = {.code = ERR_NONE};
    auto_str struct str note;
    str_init(&note, RANK_NOTE_BYTES);
    rank_note_read(note_fd, RANK_NOTE_STOPPED, &note);
    if (note.length == 0 || stopped_hang_read(str_text(&note), &hang, &err))
        return;
    snprintf(who, sizeof who, "%d %s", hang.rank, hang.time);
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
    if (store->fn->get(store, KEY_WHO, 0, value, &ignored) ||
        stopped_hang_read(value, ret, &ignored))
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
