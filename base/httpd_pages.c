#include "base/httpd_pages.h"

#include "base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct place {
    char *path;
    struct httpd_page *page;
    int64_t within_ms, until_ms; /* see httpd_expect; 0: for ever */
};

struct httpd_pages {
    pthread_mutex_t mutex; /* guards all of it */
    size_t count;
    struct place places[HTTPD_PATHS_MAX];
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
        assert(pages->places[i].page->holders == 1);
        let_go(pages->places[i].page);
        free(pages->places[i].path);
    }
    pthread_mutex_destroy(&pages->mutex);
    free(pages);
}

/* The path's place; count if it has none. With the mutex held. */
static size_t find(const struct httpd_pages *pages, const char *path)
{
    size_t i = 0;
    while (i < pages->count && strcmp(pages->places[i].path, path) != 0)
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
        pages->places[pages->count++] = (struct place){.path = xstrdup(path)};
    }
    struct place *place = &pages->places[i];
    /* Whoever is sending the old page still holds it: a slow client gets one page whole, and never
     * half of two. */
    let_go(place->page);
    place->page = page;
    place->until_ms = now_ms + place->within_ms;
    pthread_mutex_unlock(&pages->mutex);
}

void httpd_pages_expect(struct httpd_pages *pages, const char *path, int64_t within_ms,
                        int64_t now_ms)
{
    pthread_mutex_lock(&pages->mutex);
    size_t i = find(pages, path);
    assert(i < pages->count && within_ms > 0);
    pages->places[i].within_ms = within_ms;
    pages->places[i].until_ms = now_ms + within_ms;
    pthread_mutex_unlock(&pages->mutex);
}

struct httpd_page *httpd_pages_acquire(struct httpd_pages *pages, const char *path, int64_t now_ms,
                                       bool *ret_is_late)
{
    pthread_mutex_lock(&pages->mutex);
    size_t i = find(pages, path);
    const struct place *place = i < pages->count ? &pages->places[i] : NULL;
    struct httpd_page *page = place ? place->page : NULL;
    *ret_is_late = place && place->within_ms && now_ms > place->until_ms;
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
