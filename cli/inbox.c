#include "cli/inbox.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/contract.h"
#include "base/json.h"
#include "base/mem.h"

enum { READS_MAX = 64 }; /* datagrams a call, so that a flood cannot hold up the loop */

static int64_t whole(const struct json *object, const char *key)
{
    const struct json *value = json_get(object, key);
    return json_is_integer(value) ? json_as_integer(value) : -1;
}

static double number(const struct json *object, const char *key)
{
    const struct json *value = json_get(object, key);
    return json_is_number(value) ? json_as_number(value) : -1;
}

bool inbox_parse(const char *text, size_t bytes, struct progress *ret_progress)
{
    struct json *object = json_parse(text, bytes, JSON_STRICT, NULL);
    bool is_report = json_is_object(object);
    if (is_report)
        *ret_progress = (struct progress){
            .known = true,
            .epoch = whole(object, PROGRESS_EPOCH),
            .epochs = whole(object, PROGRESS_EPOCHS),
            .step = whole(object, PROGRESS_STEP),
            .steps = whole(object, PROGRESS_STEPS),
            .loss = number(object, PROGRESS_LOSS),
            .samples_per_s = number(object, PROGRESS_SAMPLES_PER_S),
            .seconds_left = number(object, PROGRESS_SECONDS_LEFT),
            .has_loss = json_is_number(json_get(object, PROGRESS_LOSS)),
        };
    json_free(object);
    return is_report;
}

int inbox_open(struct inbox *inbox, struct error *err)
{
    inbox->fd = -1;
    inbox->path[0] = '\0';
    const char *base = getenv("XDG_RUNTIME_DIR");
    if (!base || access(base, W_OK) < 0)
        base = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    auto_free char *folder = xasprintf("%s/shoal-XXXXXX", base);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    /* sun_path has 108 bytes (unix(7)): a deep TMPDIR is reported here, as bind would only say
     * "invalid". */
    if (strlen(folder) + sizeof "/progress" > sizeof address.sun_path)
        return error_set(err, ERR_CONFIG, "folder %s has too long a name for a socket", base);
    /* mkdtemp makes the folder 0700, so that no other user can send to the socket. */
    if (!mkdtemp(folder))
        return error_errno(err, errno, "make folder %s", folder);
    snprintf(inbox->folder, sizeof inbox->folder, "%s", folder);
    snprintf(inbox->path, sizeof inbox->path, "%s/progress", folder);
    memcpy(address.sun_path, inbox->path, sizeof inbox->path);
    inbox->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (inbox->fd < 0 || bind(inbox->fd, (struct sockaddr *)&address, sizeof address) < 0) {
        error_errno(err, errno, "make socket %s", inbox->path);
        inbox_close(inbox);
        return -1;
    }
    return 0;
}

void inbox_close(struct inbox *inbox)
{
    if (!inbox->path[0])
        return;
    mem_cleanup_close(&inbox->fd);
    unlink(inbox->path);
    rmdir(inbox->folder);
    inbox->path[0] = '\0';
}

bool inbox_read(const struct inbox *inbox, struct progress *progress)
{
    bool changed = false;
    char text[PROGRESS_MAX_BYTES];
    ssize_t count;
    for (int i = 0; i < READS_MAX && (count = recv(inbox->fd, text, sizeof text, 0)) >= 0; i++)
        changed |= inbox_parse(text, (size_t)count, progress);
    return changed;
}
