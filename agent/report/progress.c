#include "agent/report/progress.h"

#include "base/contract.h"
#include "base/json.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
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
    /* Datagrams that do not block: training never waits for whoever shows its progress. */
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

/* A loss that diverged is null. */
static struct json *number(double value)
{
    return json_new_real(value, 6);
}

void progress_format(const struct progress_report *report, struct str *out)
{
    struct json *object = json_new_object();
    if (report->epoch > 0) {
        json_set_integer(object, PROGRESS_EPOCH, report->epoch);
        json_set_integer(object, PROGRESS_EPOCHS, report->epochs);
        json_set_integer(object, PROGRESS_STEP, report->step);
        json_set_integer(object, PROGRESS_STEPS, report->steps);
        json_set(object, PROGRESS_LOSS, number(report->loss));
        json_set(object, PROGRESS_SAMPLES_PER_S, number(report->samples_per_s));
        json_set(object, PROGRESS_SECONDS_LEFT, number(report->seconds_left));
    }
    json_set_integer(object, PROGRESS_WORLD_SIZE, report->world_size);
    if (report->url && report->url[0])
        json_set_text(object, PROGRESS_URL, report->url);
    char *text = json_print(object, JSON_COMPACT);
    str_add(out, text);
    free(text);
    json_free(object);
}

bool progress_is_heard(const struct progress *progress)
{
    return progress->fd >= 0;
}

void progress_send_text(struct progress *progress, const char *text)
{
    /* A full queue or a listener that left: the next report has it all again. */
    if (progress->fd >= 0)
        (void)!send(progress->fd, text, strlen(text), MSG_NOSIGNAL);
}

void progress_send(struct progress *progress, const struct progress_report *report)
{
    if (!progress_is_heard(progress))
        return;
    auto_str struct str text;
    str_init(&text, PROGRESS_MAX_BYTES);
    progress_format(report, &text);
    progress_send_text(progress, str_text(&text));
}
