#include "operator/board/board_messages.h"

#include <inttypes.h>
#include <string.h>

#include "base/httpd.h"
#include "base/json_text.h"
#include "base/page.h"

enum {
    HEAD_BYTES = 128,  /* of a message beside its rows and keys */
    GONE_BYTES = 4096, /* of keys */
    ROWS_BYTES = HTTPD_MESSAGE_BYTES_MAX - HEAD_BYTES - GONE_BYTES,
};

void board_messages_gone(struct board_messages *m, const char *key)
{
    if (!m->gone.cap)
        str_init(&m->gone, GONE_BYTES);
    if (m->gone.length > 0)
        str_add(&m->gone, ",");
    json_text(key, &m->gone);
    m->any = true;
    m->reload = m->reload || m->gone.truncated;
}

void board_messages_reload(struct board_messages *m)
{
    m->any = m->reload = true;
}

void board_messages_begin(struct board_messages *m, bool heard)
{
    m->heard = heard;
    m->count = 0;
}

void board_messages_add(struct board_messages *m, const char *row)
{
    m->any = true;
    if (!m->heard || m->reload)
        return;
    struct str *text = m->count ? &m->texts[m->count - 1] : NULL;
    if (!text || text->length + 1 + strlen(row) > ROWS_BYTES) {
        if (m->count == BOARD_MESSAGES_MAX || strlen(row) > ROWS_BYTES) {
            m->reload = true;
            return;
        }
        text = &m->texts[m->count++];
        str_init(text, ROWS_BYTES);
    }
    if (text->length > 0)
        str_add(text, ",");
    str_add(text, row);
}

/* One message: the next version, and `rest` behind it. */
static void send_one(struct board_messages *m, int64_t after, const char *rest,
                     void (*send)(void *context, const char *text, size_t bytes), void *context)
{
    auto_str struct str text;
    str_init(&text, HTTPD_MESSAGE_BYTES_MAX);
    str_printf(&text, "{\"version\":%" PRId64 ",\"after\":%" PRId64 "%s}", m->version, after, rest);
    send(context, str_text(&text), text.length);
}

static void send_rows(struct board_messages *m, const char *rows, const char *gone,
                      void (*send)(void *context, const char *text, size_t bytes), void *context)
{
    auto_str struct str rest;
    str_init(&rest, HTTPD_MESSAGE_BYTES_MAX);
    str_printf(&rest, ",\"jobs\":[%s],\"gone\":[%s]", rows, gone);
    m->version++;
    send_one(m, m->version - 1, str_text(&rest), send, context);
}

static void send_changes(struct board_messages *m,
                         void (*send)(void *context, const char *text, size_t bytes), void *context)
{
    if (m->reload) {
        m->version++;
        send_one(m, m->version - 1, ",\"reload\":true", send, context);
        return;
    }
    const char *gone = str_text(&m->gone);
    for (int i = 0; i < m->count; i++, gone = "")
        send_rows(m, str_text(&m->texts[i]), gone, send, context);
    if (m->count == 0)
        send_rows(m, "", gone, send, context);
}

void board_messages_end(struct board_messages *m, int64_t now_ms,
                        void (*send)(void *context, const char *text, size_t bytes), void *context)
{
    bool sends = m->heard && (m->any || now_ms - m->sent_ms >= PAGE_SIGN_OF_LIFE_MS);
    if (sends && m->any)
        send_changes(m, send, context);
    else if (sends)
        send_one(m, m->version, "", send, context);
    else if (m->any)
        m->version++; /* who was told before asks again */
    if (sends)
        m->sent_ms = now_ms;
    for (int i = 0; i < m->count; i++)
        str_free(&m->texts[i]);
    str_free(&m->gone);
    m->any = m->reload = false;
    m->count = 0;
}
