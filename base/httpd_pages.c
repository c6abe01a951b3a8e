#include "base/httpd_pages.h"

#include "base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct httpd_pages {
    pthread_mutex_t mutex; /* guards all of it */
    size_t count;
    char *paths[HTTPD_PATHS_MAX];
    struct httpd_page *pages[HTTPD_PATHS_MAX];
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
        assert(pages->pages[i]->holders == 1);
        let_go(pages->pages[i]);
        free(pages->paths[i]);
    }
    pthread_mutex_destroy(&pages->mutex);
    free(pages);
}

/* The path's place; count if it has none. With the mutex held. */
static size_t find(const struct httpd_pages *pages, const char *path)
{
    size_t i = 0;
    while (i < pages->count && strcmp(pages->paths[i], path) != 0)
        i++;
    return i;
}

void httpd_pages_put(struct httpd_pages *pages, const char *path, int status,
                     const char *content_type, const char *body, size_t bytes)
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
        pages->paths[pages->count++] = xstrdup(path);
    }
    let_go(pages->pages[i]);
    pages->pages[i] = page;
    pthread_mutex_unlock(&pages->mutex);
}

struct httpd_page *httpd_pages_take(struct httpd_pages *pages, const char *path)
{
    pthread_mutex_lock(&pages->mutex);
    size_t i = find(pages, path);
    struct httpd_page *page = i < pages->count ? pages->pages[i] : NULL;
    if (page)
        page->holders++;
    pthread_mutex_unlock(&pages->mutex);
    return page;
}

void httpd_pages_give_back(struct httpd_pages *pages, struct httpd_page *page)
{
    pthread_mutex_lock(&pages->mutex);
    let_go(page);
    pthread_mutex_unlock(&pages->mutex);
}
