#include "base/httpd_pages.h"

#include "base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    char *path;
    struct httpd_page *page;
    int64_t within_ms, until_ms; /* see httpd_expect; 0: for ever */
};

/* What is answered when it is asked for. */
struct branch {
    char *path, *content_type;
    bool (*answer)(void *context, const char *path, struct str *body);
    void *context;
};

struct httpd_pages {
    pthread_mutex_t mutex; /* guards all of it */
    size_t count, branch_count;
    struct entry entries[HTTPD_PATHS_MAX];
    struct branch branches[HTTPD_BRANCHES_MAX]; /* one that is there does not change */
};

struct httpd_pages *httpd_pages_open(void)
{
    struct httpd_pages *pages = xcalloc(1, sizeof *pages);
    pthread_mutex_init(&pages->mutex, NULL);
    return pages;
}

/* With the mutex held. */
static void let_go(struct httpd_page *page)
{
    if (!page || --page->holders > 0)
        return;
    free(page->content_type);
    free(page->body);
    free(page);
}

void httpd_pages_close(struct httpd_pages *pages)
{
    for (size_t i = 0; i < pages->count; i++) {
        assert(pages->entries[i].page->holders == 1);
        let_go(pages->entries[i].page);
        free(pages->entries[i].path);
    }
    for (size_t i = 0; i < pages->branch_count; i++) {
        free(pages->branches[i].path);
        free(pages->branches[i].content_type);
    }
    pthread_mutex_destroy(&pages->mutex);
    free(pages);
}

/* The path's entry; count if it has none. With the mutex held. */
static size_t find(const struct httpd_pages *pages, const char *path)
{
    size_t i = 0;
    while (i < pages->count && strcmp(pages->entries[i].path, path) != 0)
        i++;
    return i;
}

void httpd_pages_put(struct httpd_pages *pages, const char *path, int status,
                     const char *content_type, const char *body, size_t bytes, int64_t now_ms)
{
    assert(path[0] == '/' && bytes <= HTTPD_BODY_BYTES_MAX);
    struct httpd_page *page = xcalloc(1, sizeof *page);
    *page = (struct httpd_page){.holders = 1,
                                .status = status,
                                .content_type = xstrdup(content_type),
                                .bytes = bytes,
                                .body = xmalloc(bytes)};
    memcpy(page->body, body, bytes);
    pthread_mutex_lock(&pages->mutex);
    size_t i = find(pages, path);
    if (i == pages->count) {
        assert(pages->count < HTTPD_PATHS_MAX);
        pages->entries[pages->count++] = (struct entry){.path = xstrdup(path)};
    }
    struct entry *entry = &pages->entries[i];
    /* Whoever is sending the old page still holds it: a slow client gets one page whole, and never
     * half of two. */
    let_go(entry->page);
    entry->page = page;
    entry->until_ms = now_ms + entry->within_ms;
    pthread_mutex_unlock(&pages->mutex);
}

void httpd_pages_expect(struct httpd_pages *pages, const char *path, int64_t within_ms,
                        int64_t now_ms)
{
    pthread_mutex_lock(&pages->mutex);
    size_t i = find(pages, path);
    assert(i < pages->count && within_ms > 0);
    pages->entries[i].within_ms = within_ms;
    pages->entries[i].until_ms = now_ms + within_ms;
    pthread_mutex_unlock(&pages->mutex);
}

void httpd_pages_answer_below(struct httpd_pages *pages, const char *path, const char *content_type,
                              bool (*answer)(void *context, const char *path, struct str *body),
                              void *context)
{
    pthread_mutex_lock(&pages->mutex);
    assert(path[0] == '/' && pages->branch_count < HTTPD_BRANCHES_MAX);
    pages->branches[pages->branch_count++] = (struct branch){.path = xstrdup(path),
                                                             .content_type = xstrdup(content_type),
                                                             .answer = answer,
                                                             .context = context};
    pthread_mutex_unlock(&pages->mutex);
}

/* With the mutex held. */
static const struct branch *find_branch(const struct httpd_pages *pages, const char *path)
{
    for (size_t i = 0; i < pages->branch_count; i++) {
        size_t length = strlen(pages->branches[i].path);
        if (strncmp(path, pages->branches[i].path, length) == 0 &&
            (path[length] == '\0' || path[length] == '/'))
            return &pages->branches[i];
    }
    return NULL;
}

/* A page for the one who asks. Without the mutex: who answers may publish at the same time. */
static struct httpd_page *answered(const struct branch *branch, const char *path)
{
    auto_str struct str body;
    str_init(&body, HTTPD_BODY_BYTES_MAX);
    if (!branch || !branch->answer(branch->context, path, &body) || body.truncated)
        return NULL;
    struct httpd_page *page = xcalloc(1, sizeof *page);
    *page = (struct httpd_page){.holders = 1,
                                .status = 200,
                                .content_type = xstrdup(branch->content_type),
                                .bytes = body.length,
                                .body = take(body.text)};
    return page;
}

struct httpd_page *httpd_pages_acquire(struct httpd_pages *pages, const char *path, int64_t now_ms,
                                       bool *ret_is_late)
{
    pthread_mutex_lock(&pages->mutex);
    size_t i = find(pages, path);
    const struct entry *entry = i < pages->count ? &pages->entries[i] : NULL;
    struct httpd_page *page = entry ? entry->page : NULL;
    *ret_is_late = entry ? entry->within_ms && now_ms > entry->until_ms
                         : !pages->count && !pages->branch_count;
    if (page)
        page->holders++;
    const struct branch *branch = page ? NULL : find_branch(pages, path);
    pthread_mutex_unlock(&pages->mutex);
    return page ? page : answered(branch, path);
}

void httpd_pages_release(struct httpd_pages *pages, struct httpd_page *page)
{
    pthread_mutex_lock(&pages->mutex);
    let_go(page);
    pthread_mutex_unlock(&pages->mutex);
}
