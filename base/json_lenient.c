#include "base/json_lenient.h"

#include "base/json.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* "\u0000" without its backslash, and what takes its place. */
#define NUL         "u0000"
#define REPLACEMENT "ufffd"
#define NUL_BYTES   5

/* The start of a list that is left out, as Go writes it. */
#define LEFT_OUT "\"managedFields\":["

struct sanitizer {
    char *out; /* NULL: only look */
    size_t bytes, changes;
    int depth;
    int most; /* what is nested deeper is left out */
    bool managed_fields;
    bool in_text, escaped;
};

static void write(struct sanitizer *m, const char *bytes, size_t count)
{
    if (m->out)
        memcpy(m->out + m->bytes, bytes, count);
    m->bytes += count;
}

/* Takes the next character of a text, or the five of an escaped NUL; returns how many. */
static size_t take_in_text(struct sanitizer *m, const char *at, size_t left)
{
    bool nul = m->escaped && left >= NUL_BYTES && memcmp(at, NUL, NUL_BYTES) == 0;
    size_t count = nul ? NUL_BYTES : 1;
    if (m->depth <= m->most) {
        write(m, nul ? REPLACEMENT : at, count);
        m->changes += nul;
    }
    if (!m->escaped && *at == '"')
        m->in_text = false;
    m->escaped = !m->escaped && *at == '\\';
    return count;
}

static void take_between_texts(struct sanitizer *m, const char *at, size_t left)
{
    if (!m->managed_fields && left >= strlen(LEFT_OUT) &&
        memcmp(at, LEFT_OUT, strlen(LEFT_OUT)) == 0 && m->depth < m->most)
        m->most = m->depth;
    bool opens = *at == '{' || *at == '[', closes = *at == '}' || *at == ']';
    m->in_text = *at == '"';
    m->depth += opens;
    if (opens && m->depth == m->most + 1) {
        write(m, "null", 4);
        m->changes++;
    }
    if (m->depth <= m->most)
        write(m, at, 1);
    m->depth -= closes;
    if (closes && m->depth == m->most)
        m->most = JSON_LENIENT_MAX_DEPTH;
}

/* Writes the text without what is left out to `out` (NULL: only counts) and returns how much was
 * changed; *ret_bytes is its length then. */
static size_t sanitize(const char *text, size_t bytes, bool managed_fields, char *out,
                       size_t *ret_bytes)
{
    struct sanitizer m = {
        .out = out, .most = JSON_LENIENT_MAX_DEPTH, .managed_fields = managed_fields};
    for (size_t i = 0; i < bytes;) {
        if (m.in_text) {
            i += take_in_text(&m, text + i, bytes - i);
        } else {
            take_between_texts(&m, text + i, bytes - i);
            i++;
        }
    }
    *ret_bytes = m.bytes;
    return m.changes;
}

struct json *json_parse_lenient(const char *text, size_t bytes, bool managed_fields,
                                struct error *err)
{
    size_t mended_bytes;
    auto_free char *mended = NULL;
    if (sanitize(text, bytes, managed_fields, NULL, &mended_bytes) > 0) {
        mended = xmalloc(mended_bytes);
        sanitize(text, bytes, managed_fields, mended, &mended_bytes);
        text = mended;
        bytes = mended_bytes;
    }
    return json_parse(text, bytes, JSON_STRICT, err);
}
