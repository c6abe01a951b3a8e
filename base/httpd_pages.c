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

struct httpd_pages {
    pthread_mutex_t mutex; /* guards all of it */
    size_t count;
    struct entry entries[HTTPD_PATHS_MAX];
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

struct httpd_page *httpd_pages_acquire(struct httpd_pages *pages, const char *path, int64_t now_ms,
                                       bool *ret_is_late)
{
    pthread_mutex_lock(&pages->mutex);
    size_t i = find(pages, path);
    const struct entry *entry = i < pages->count ? &pages->entries[i] : NULL;
    struct httpd_page *page = entry ? entry->page : NULL;
    *ret_is_late = entry && entry->within_ms && now_ms > entry->until_ms;
    if (page)
        page->holders++;
    pthread_mutex_unlock(&pages->mutex);
    return page;
}

void httpd_pages_release(struct httpd_pages *pages, struct httpd_page *page)
{
    pthread_mutex_lock(&pages->mutex);
    let_go(page);
    pthread_mutex_unlock(&pages->mutex);
}
