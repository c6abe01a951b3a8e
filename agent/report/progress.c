#include "agent/report/progress.h"

#include "base/contract.h"
#include "base/mem.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct progress {
    int fd; /* -1: nobody listens */
};

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!path || !*path || strlen(path) >= sizeof address.sun_path)
        return -1;
    memcpy(address.sun_path, path, strlen(path) + 1);
    auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address))
        return -1;
    return take_fd(fd);
}

struct progress *progress_open(const char *path)
{
    struct progress *progress = xcalloc(1, sizeof *progress);
    progress->fd = connect_to(path);
    return progress;
}

void progress_close(struct progress *progress)
{
    if (!progress)
        return;
    if (progress->fd >= 0)
        close(progress->fd);
    free(progress);
}

/* JSON has no infinities and no NaN: a loss that diverged is null. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

void progress_format(const struct progress_report *report, struct str *out)
{
    json_t *object = json_pack(
        "{s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:i}", PROGRESS_EPOCH, (json_int_t)report->epoch,
        PROGRESS_EPOCHS, (json_int_t)report->epochs, PROGRESS_STEP, (json_int_t)report->step,
        PROGRESS_STEPS, (json_int_t)report->steps, PROGRESS_LOSS, number(report->loss),
        PROGRESS_SAMPLES_PER_S, number(report->samples_per_s), PROGRESS_SECONDS_LEFT,
        number(report->seconds_left), PROGRESS_WORLD_SIZE, report->world_size);
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(6));
    str_add(out, text);
    free(text);
    json_decref(object);
}

void progress_send(struct progress *progress, const struct progress_report *report)
{
    if (progress->fd < 0)
        return;
    auto_str struct str text;
    str_init(&text, PROGRESS_MAX_BYTES);
    progress_format(report, &text);
    /* A full queue or a listener that left: the next report tells it all again. */
    (void)!send(progress->fd, str_text(&text), text.length, MSG_NOSIGNAL);
}
