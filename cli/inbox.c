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
#include "base/str.h"
#include "base/utf8.h"
#include "operator/decode/decode_training.h"

enum {
    READS_MAX = 64,           /* datagrams a call, so that a flood cannot hold up the loop */
    RATIO_MAX = 1000,         /* more is no ratio of times */
    SECONDS_MAX = 1000000000, /* more is no time that a run may take */
};

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

static double seconds(const struct json *object, const char *key)
{
    double value = number(object, key);
    return value <= SECONDS_MAX ? value : -1;
}

/* A program of the job sent it and a terminal shows it: an address is of printed characters. */
static void read_url(const struct json *value, char ret_url[PROGRESS_URL_BYTES])
{
    const char *text = json_is_string(value) ? json_as_text(value) : "";
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return;
    if (length < PROGRESS_URL_BYTES && str_starts_with(text, "http://"))
        memcpy(ret_url, text, length + 1);
}

bool inbox_parse(const char *text, size_t bytes, struct progress *ret_progress)
{
    struct json *object = json_parse(text, bytes, JSON_STRICT, NULL);
    bool is_report = json_is_object(object);
    if (is_report) {
        *ret_progress = (struct progress){
            .known = json_get(object, PROGRESS_STEP) != NULL,
            .epoch = whole(object, PROGRESS_EPOCH),
            .epochs = whole(object, PROGRESS_EPOCHS),
            .step = whole(object, PROGRESS_STEP),
            .steps = whole(object, PROGRESS_STEPS),
            .loss = number(object, PROGRESS_LOSS),
            .samples_per_s = number(object, PROGRESS_SAMPLES_PER_S),
            .seconds_left = seconds(object, PROGRESS_SECONDS_LEFT),
            .has_loss = json_is_number(json_get(object, PROGRESS_LOSS)),
        };
        read_url(json_get(object, PROGRESS_URL), ret_progress->url);
    }
    json_free(object);
    return is_report;
}

static bool is_text(const struct json *object, const char *key, const char *text)
{
    const struct json *value = json_get(object, key);
    return json_is_string(value) && strcmp(json_as_text(value), text) == 0;
}

static struct rank_item read_rank(const struct json *object)
{
    const struct json *phase = json_get(object, PROGRESS_RANK_PHASE);
    double ratio = number(object, PROGRESS_RANK_COMPUTE);
    struct rank_item item = {
        .rank = (int)whole(object, PROGRESS_RANK),
        .waits = json_is_true(json_get(object, PROGRESS_RANK_WAITS)),
        .straggles = is_text(object, PROGRESS_RANK_STATE, PROGRESS_RANK_STRAGGLING),
        .hangs = is_text(object, PROGRESS_RANK_STATE, PROGRESS_RANK_HUNG),
        .compute_ratio = ratio > 0 && ratio < RATIO_MAX ? ratio : 0,
    };
    snprintf(item.phase, sizeof item.phase, "%s", json_is_string(phase) ? json_as_text(phase) : "");
    utf8_make_printable(item.phase, strlen(item.phase));
    return item;
}

bool inbox_parse_ranks(const char *text, size_t bytes, struct rank_list *ret_ranks)
{
    struct json *object = json_parse(text, bytes, JSON_STRICT, NULL), *rank;
    const struct json *ranks = json_get(object, PROGRESS_RANKS);
    bool is_report = json_is_array(ranks);
    if (is_report)
        ret_ranks->count = 0;
    json_each_item(rank, ranks) {
        if (ret_ranks->count < RANK_LIST_MAX)
            ret_ranks->items[ret_ranks->count++] = read_rank(rank);
    }
    json_free(object);
    return is_report;
}

const char *inbox_temporary(void)
{
    const char *base = getenv("TMPDIR");
    return base && *base ? base : "/tmp";
}

int inbox_open(struct inbox *inbox, struct error *err)
{
    inbox->fd = -1;
    inbox->path[0] = '\0';
    inbox->token[0] = '\0';
    const char *base = getenv("XDG_RUNTIME_DIR");
    if (!base || access(base, W_OK) < 0)
        base = inbox_temporary();
    auto_free char *folder = xasprintf("%s/" INBOX_FOLDER_PREFIX "XXXXXX", base);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    /* sun_path has 108 bytes (unix(7)): a deep TMPDIR is reported here, as bind would only say
     * "invalid". */
    if (strlen(folder) + sizeof "/" INBOX_SOCKET > sizeof address.sun_path)
        return error_set(err, ERR_CONFIG, "folder %s has too long a name for a socket", base);
    /* mkdtemp makes the folder 0700, so that no other user can send to the socket. */
    if (!mkdtemp(folder))
        return error_errno(err, errno, "make folder %s", folder);
    snprintf(inbox->folder, sizeof inbox->folder, "%s", folder);
    snprintf(inbox->path, sizeof inbox->path, "%s/" INBOX_SOCKET, folder);
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

static bool take_report(const char *text, size_t bytes, struct reports *reports)
{
    struct training told;
    struct error none; /* it may be one of the others, or nonsense */
    if (decode_training_told(text, bytes, &told, &none) == 0) {
        reports->training = told;
        return true;
    }
    return inbox_parse_ranks(text, bytes, &reports->ranks) ||
           inbox_parse(text, bytes, &reports->progress);
}

/* Only from an address is there one to answer to. */
static bool take_question(struct inbox *inbox, const char *text, size_t bytes,
                          const struct sockaddr_un *from, socklen_t from_bytes)
{
    struct json *object = json_parse(text, bytes, JSON_STRICT, NULL);
    const char *token = json_as_text(json_get(object, INBOX_ASK));
    if (token && strlen(token) < sizeof inbox->token && from_bytes > sizeof from->sun_family) {
        snprintf(inbox->token, sizeof inbox->token, "%s", token);
        inbox->asker = *from;
        inbox->asker_bytes = from_bytes;
    }
    json_free(object);
    return token != NULL;
}

bool inbox_read(struct inbox *inbox, struct reports *reports)
{
    bool changed = false;
    char text[PROGRESS_RANKS_MAX_BYTES];
    for (int i = 0; i < READS_MAX; i++) {
        struct sockaddr_un from;
        socklen_t from_bytes = sizeof from;
        ssize_t count =
            recvfrom(inbox->fd, text, sizeof text, 0, (struct sockaddr *)&from, &from_bytes);
        if (count < 0)
            break;
        if (!take_question(inbox, text, (size_t)count, &from, from_bytes))
            changed |= take_report(text, (size_t)count, reports);
    }
    return changed;
}

void inbox_answer(struct inbox *inbox, struct json *answer)
{
    json_set_text(answer, INBOX_ASK, inbox->token);
    auto_free char *text = json_print(answer, JSON_COMPACT);
    if (strlen(text) > INBOX_ANSWER_MAX_BYTES) {
        json_remove(answer, INBOX_PODS);
        free(text);
        text = json_print(answer, JSON_COMPACT);
    }
    json_free(answer);
    inbox->token[0] = '\0';
    if (strlen(text) <= INBOX_ANSWER_MAX_BYTES)
        (void)!sendto(inbox->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
                      (struct sockaddr *)&inbox->asker, inbox->asker_bytes);
}
