#include "agent/text/added.h"

#include "agent/text/utf8.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int compare_texts(const struct added_token *x, const struct added_token *y)
{
    size_t shorter = x->bytes < y->bytes ? x->bytes : y->bytes;
    int order = memcmp(x->text, y->text, shorter);
    return order ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int compare(const void *a, const void *b)
{
    const struct added_token *x = a, *y = b;
    int order = compare_texts(x, y);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

void added_init(struct added *added, struct added_token *tokens, size_t count)
{
    *added = (struct added){.tokens = tokens};
    if (count == 0)
        return;
    qsort(tokens, count, sizeof *tokens, compare);
    for (size_t i = 0; i < count; i++) {
        assert(tokens[i].bytes > 0);
        if (added->count == 0 || compare_texts(&tokens[added->count - 1], &tokens[i]) != 0)
            tokens[added->count++] = tokens[i];
    }
    for (size_t i = 0; i < added->count; i++)
        added->first[(uint8_t)tokens[i].text[0] + 1]++;
    for (int b = 0; b < 256; b++)
        added->first[b + 1] += added->first[b];
}

/* Tokens are ordered, so those that share the first n bytes lie side by side, the one of n bytes
 * first. */
const struct added_token *added_find(const struct added *added, const char *text, size_t bytes)
{
    size_t low = added->first[(uint8_t)text[0]], high = added->first[(uint8_t)text[0] + 1];
    const struct added_token *found = NULL;
    for (size_t n = 1; low < high; n++) {
        if (added->tokens[low].bytes == n)
            found = &added->tokens[low++];
        if (n == bytes || low == high)
            break;
        uint8_t next = (uint8_t)text[n];
        size_t begin = low, end = high;
        while (begin < end) { /* the first whose byte n is not below */
            size_t middle = (begin + end) / 2;
            if ((uint8_t)added->tokens[middle].text[n] < next)
                begin = middle + 1;
            else
                end = middle;
        }
        for (low = begin, end = high; begin < end;) { /* the first whose byte n is above */
            size_t middle = (begin + end) / 2;
            if ((uint8_t)added->tokens[middle].text[n] <= next)
                begin = middle + 1;
            else
                end = middle;
        }
        high = begin;
    }
    return found;
}

/* tokenizers' single_word: no letter, digit or underscore on either side. */
static bool stands_alone(const char *text, size_t bytes, size_t begin, size_t end)
{
    uint32_t character = 0;
    if (begin > 0 && utf8_decode_last(text, begin, &character) > 0 && utf8_is_word(character))
        return false;
    return end == bytes || utf8_decode(text + end, bytes - end, &character) == 0 ||
           !utf8_is_word(character);
}

/* The white space that ends at `end`, but not before `least`: where it begins. */
static size_t space_before(const char *text, size_t least, size_t end)
{
    uint32_t character = 0;
    while (end > least) {
        size_t length = utf8_decode_last(text, end, &character);
        if (length == 0 || !utf8_is_space(character) || end - least < length)
            break;
        end -= length;
    }
    return end;
}

static size_t space_after(const char *text, size_t begin, size_t bytes)
{
    uint32_t character = 0;
    while (begin < bytes) {
        size_t length = utf8_decode(text + begin, bytes - begin, &character);
        if (length == 0 || !utf8_is_space(character))
            break;
        begin += length;
    }
    return begin;
}

void added_walk_init(struct added_walk *walk, const struct added *added, const char *text,
                     size_t bytes)
{
    *walk = (struct added_walk){.added = added, .text = text, .bytes = bytes, .held = -1};
}

/* The next token at or after walk->look, and its stretch of text. */
static const struct added_token *find_next(struct added_walk *walk, size_t *ret_begin,
                                           size_t *ret_end)
{
    const struct added *added = walk->added;
    while (added->count > 0 && walk->look < walk->bytes) {
        size_t begin = walk->look;
        uint8_t byte = (uint8_t)walk->text[begin];
        const struct added_token *token = NULL;
        if (added->first[byte] < added->first[byte + 1])
            token = added_find(added, walk->text + begin, walk->bytes - begin);
        /* The longest token of those that begin here, then on behind it: tokenizers'
         * leftmost-longest matching. Byte by byte is right, as no token begins within a
         * character. */
        walk->look += token ? token->bytes : 1;
        if (!token)
            continue;
        size_t end = walk->look;
        if (token->single_word && !stands_alone(walk->text, walk->bytes, begin, end))
            continue;
        *ret_begin = token->lstrip ? space_before(walk->text, walk->done, begin) : begin;
        *ret_end = token->rstrip ? space_after(walk->text, end, walk->bytes) : end;
        return token;
    }
    return NULL;
}

bool added_walk_next(struct added_walk *walk, struct added_piece *ret_piece)
{
    if (walk->held >= 0) {
        *ret_piece = (struct added_piece){walk->done, walk->held_end, walk->held};
        walk->done = walk->held_end;
        walk->held = -1;
        return true;
    }
    size_t begin, end;
    const struct added_token *token = find_next(walk, &begin, &end);
    if (!token) {
        if (walk->done >= walk->bytes)
            return false;
        *ret_piece = (struct added_piece){walk->done, walk->bytes, -1};
        walk->done = walk->bytes;
        return true;
    }
    if (begin > walk->done) { /* first what lies before it */
        *ret_piece = (struct added_piece){walk->done, begin, -1};
        walk->done = begin;
        walk->held = token->id;
        walk->held_end = end;
        return true;
    }
    *ret_piece = (struct added_piece){begin, end, token->id};
    walk->done = end;
    return true;
}
