#include "agent/trainer/phases.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 256 }; /* marks allocated at once: they may not move while the stream writes them */

struct mark {
    enum run_phase phase;
    int64_t ns;
};

struct phases {
    struct stream *stream;
    struct mark **blocks;
    int count, capacity; /* marks */
};

static struct mark *mark_at(const struct phases *p, int i)
{
    return &p->blocks[i / BLOCK][i % BLOCK];
}

struct phases *phases_open(struct stream *stream)
{
    struct phases *p = xcalloc(1, sizeof *p);
    p->stream = stream;
    return p;
}

void phases_close(struct phases *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->capacity / BLOCK; i++)
        free(p->blocks[i]);
    free(p->blocks);
    free(p);
}

void phases_begin(struct phases *p)
{
    p->count = 0;
}

enum run_phase phases_mark(struct phases *p, enum run_phase phase)
{
    enum run_phase before = p->count ? mark_at(p, p->count - 1)->phase : phase;
    if (p->count == p->capacity) {
        int blocks = p->capacity / BLOCK;
        p->blocks = xrealloc(p->blocks, ((size_t)blocks + 1) * sizeof *p->blocks);
        p->blocks[blocks] = xcalloc(BLOCK, sizeof **p->blocks);
        p->capacity += BLOCK;
    }
    struct mark *mark = mark_at(p, p->count++);
    mark->phase = phase;
    /* The stream writes the time when it comes there: the host is ahead of it by whole steps. */
    stream_timestamp(p->stream, &mark->ns);
    return before;
}

void phases_take(struct phases *p, double ret_s[RUN_STEP_PHASES])
{
    memset(ret_s, 0, RUN_STEP_PHASES * sizeof *ret_s);
    for (int i = 0; i + 1 < p->count; i++) {
        const struct mark *mark = mark_at(p, i);
        ret_s[mark->phase] += (double)(mark_at(p, i + 1)->ns - mark->ns) / 1e9;
    }
    phases_begin(p);
}
