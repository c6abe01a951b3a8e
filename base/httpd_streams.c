#include "base/httpd_streams.h"

#include "base/mem.h"

#include <assert.h>
#include <libwebsockets.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 256 };

struct message {
    char *text;
    size_t bytes;
};

struct stream {
    char *path;
    struct message ring[HTTPD_STREAM_MESSAGES_MAX]; /* message n lies at n modulo its size */
    int64_t pushed;                                 /* so far */
    int clients;
};

struct httpd_client {
    struct lws *wsi; /* NULL: free */
    struct stream *stream;
    int64_t next; /* message to send */
};

struct httpd_streams {
    pthread_mutex_t mutex; /* guards the streams; the seats are the server's thread's */
    struct stream streams[HTTPD_STREAMS_MAX];
    int count;
    struct httpd_client seats[HTTPD_STREAM_CLIENTS_MAX];
};

struct httpd_streams *httpd_streams_open(void)
{
    struct httpd_streams *s = xcalloc(1, sizeof *s);
    pthread_mutex_init(&s->mutex, NULL);
    return s;
}

void httpd_streams_close(struct httpd_streams *s)
{
    for (int i = 0; i < s->count; i++) {
        assert(s->streams[i].clients == 0);
        for (int m = 0; m < HTTPD_STREAM_MESSAGES_MAX; m++)
            free(s->streams[i].ring[m].text);
        free(s->streams[i].path);
    }
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

/* NULL: no such stream. With the mutex held. */
static struct stream *find(struct httpd_streams *s, const char *path)
{
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->streams[i].path, path) == 0)
            return &s->streams[i];
    return NULL;
}

void httpd_streams_add(struct httpd_streams *s, const char *path)
{
    pthread_mutex_lock(&s->mutex);
    assert(path[0] == '/' && s->count < HTTPD_STREAMS_MAX && !find(s, path));
    s->streams[s->count++].path = xstrdup(path);
    pthread_mutex_unlock(&s->mutex);
}

void httpd_streams_push(struct httpd_streams *s, const char *path, const char *text, size_t bytes)
{
    assert(bytes <= HTTPD_MESSAGE_BYTES_MAX);
    char *copy = xmalloc(bytes);
    memcpy(copy, text, bytes);
    pthread_mutex_lock(&s->mutex);
    struct stream *stream = find(s, path);
    assert(stream);
    struct message *slot = &stream->ring[stream->pushed++ % HTTPD_STREAM_MESSAGES_MAX];
    free(slot->text);
    *slot = (struct message){copy, bytes};
    pthread_mutex_unlock(&s->mutex);
}

int httpd_streams_clients(struct httpd_streams *s, const char *path)
{
    pthread_mutex_lock(&s->mutex);
    const struct stream *stream = find(s, path);
    int clients = stream ? stream->clients : 0;
    pthread_mutex_unlock(&s->mutex);
    return clients;
}

/* ---- clients ---- */

static struct httpd_client *free_client(struct httpd_streams *s)
{
    for (int i = 0; i < HTTPD_STREAM_CLIENTS_MAX; i++)
        if (!s->seats[i].wsi)
            return &s->seats[i];
    return NULL;
}

/* The stream that the connection asked for, or NULL. With the mutex held. */
static struct stream *stream_of(struct httpd_streams *s, struct lws *wsi)
{
    char path[PATH_BYTES];
    if (lws_hdr_copy(wsi, path, sizeof path, WSI_TOKEN_GET_URI) <= 0)
        return NULL;
    return find(s, path);
}

bool httpd_streams_has(struct httpd_streams *s, const char *path)
{
    pthread_mutex_lock(&s->mutex);
    bool has = find(s, path);
    pthread_mutex_unlock(&s->mutex);
    return has;
}

const char *httpd_streams_refusal(struct httpd_streams *s, struct lws *wsi, int *ret_status)
{
    pthread_mutex_lock(&s->mutex);
    bool is_stream = stream_of(s, wsi);
    pthread_mutex_unlock(&s->mutex);
    *ret_status = HTTP_STATUS_NOT_FOUND;
    if (!is_stream)
        return "no WebSocket is served here";
    *ret_status = HTTP_STATUS_BAD_REQUEST; /* lws takes one for a name of its own table */
    if (lws_hdr_total_length(wsi, WSI_TOKEN_PROTOCOL) > 0)
        return "there is no subprotocol";
    *ret_status = HTTP_STATUS_SERVICE_UNAVAILABLE;
    return free_client(s) ? NULL : "too many listen already";
}

struct httpd_client *httpd_streams_join(struct httpd_streams *s, struct lws *wsi)
{
    struct httpd_client *seat = free_client(s);
    if (!seat)
        return NULL;
    pthread_mutex_lock(&s->mutex);
    struct stream *stream = stream_of(s, wsi);
    if (stream) {
        stream->clients++;
        /* A new listener gets the last message at once: it would else show nothing until the next
         * one. */
        *seat = (struct httpd_client){
            .wsi = wsi, .stream = stream, .next = stream->pushed > 0 ? stream->pushed - 1 : 0};
    }
    pthread_mutex_unlock(&s->mutex);
    if (!stream)
        return NULL;
    lws_callback_on_writable(wsi);
    return seat;
}

void httpd_streams_leave(struct httpd_streams *s, struct httpd_client *seat)
{
    if (!seat)
        return;
    pthread_mutex_lock(&s->mutex);
    seat->stream->clients--;
    pthread_mutex_unlock(&s->mutex);
    *seat = (struct httpd_client){0};
}

/* How many messages wait for the client. With the mutex held. */
static int64_t waiting(const struct httpd_client *seat)
{
    return seat->stream->pushed - seat->next;
}

int httpd_streams_write(struct httpd_streams *s, struct httpd_client *seat)
{
    /* Copied out under the lock: the socket may take its time, and a push may free the message
     * meanwhile. lws puts its frame header into the LWS_PRE bytes before the text. */
    unsigned char out[LWS_PRE + HTTPD_MESSAGE_BYTES_MAX];
    size_t bytes = 0;
    pthread_mutex_lock(&s->mutex);
    int64_t messages = waiting(seat);
    if (messages > 0 && messages <= HTTPD_STREAM_MESSAGES_MAX) {
        const struct message *m = &seat->stream->ring[seat->next++ % HTTPD_STREAM_MESSAGES_MAX];
        bytes = m->bytes;
        memcpy(out + LWS_PRE, m->text, bytes);
    }
    pthread_mutex_unlock(&s->mutex);
    /* The ring has overwritten what it was to get next: a listener that is too slow is closed,
     * rather than shown a gap. */
    if (messages > HTTPD_STREAM_MESSAGES_MAX)
        return -1;
    if (messages == 0)
        return 0;
    if (lws_write(seat->wsi, out + LWS_PRE, bytes, LWS_WRITE_TEXT) < (int)bytes)
        return -1;
    if (messages > 1)
        lws_callback_on_writable(seat->wsi);
    return 0;
}

void httpd_streams_wake(struct httpd_streams *s)
{
    for (int i = 0; i < HTTPD_STREAM_CLIENTS_MAX; i++) {
        struct httpd_client *seat = &s->seats[i];
        if (!seat->wsi)
            continue;
        pthread_mutex_lock(&s->mutex);
        int64_t messages = waiting(seat);
        pthread_mutex_unlock(&s->mutex);
        if (messages > HTTPD_STREAM_MESSAGES_MAX) /* its socket takes no more: nor a farewell */
            lws_set_timeout(seat->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
        else if (messages > 0)
            lws_callback_on_writable(seat->wsi);
    }
}
