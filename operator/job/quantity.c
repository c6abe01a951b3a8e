#include "operator/job/quantity.h"

#include "base/mem.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define TEN_MAX      (1L << 40) /* of an exponent as it is written: more digits than memory has */
#define MAX_EXPONENT 30         /* beyond it everything is too much, or rounds up to a thousandth */

typedef unsigned __int128 wide;

static wide times(wide a, wide b)
{
    wide product;
    return __builtin_mul_overflow(a, b, &product) ? ~(wide)0 : product;
}

static wide power(wide base, long exponent)
{
    wide result = 1;
    while (exponent-- > 0)
        result = times(result, base);
    return result;
}

/* What is behind the digits, as a power of 2 or of 10. */
static bool parse_suffix(const char *suffix, long *ret_two, long *ret_ten)
{
    static const char *const binary[] = {"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    static const char *const decimal[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
    *ret_two = *ret_ten = 0;
    for (int i = 0; i < (int)array_length(binary); i++) {
        if (strcmp(suffix, binary[i]) == 0) {
            *ret_two = 10 * (i + 1);
            return true;
        }
    }
    for (int i = 0; i < (int)array_length(decimal); i++) {
        if (strcmp(suffix, decimal[i]) == 0) {
            *ret_ten = 3 * (i - 3);
            return true;
        }
    }
    if (suffix[0] != 'e' && suffix[0] != 'E')
        return false;
    const char *digits = suffix + 1 + (suffix[1] == '+' || suffix[1] == '-');
    if (!isdigit((unsigned char)*digits) || digits[strspn(digits, "0123456789")])
        return false;
    long ten = strtol(suffix + 1, NULL, 10);
    *ret_ten = ten > TEN_MAX ? TEN_MAX : ten < -TEN_MAX ? -TEN_MAX : ten;
    return true;
}

bool quantity_parse(const char *text, int64_t *ret_milli)
{
    wide digits = 0;
    long decimals = 0, two, ten;
    bool any = false, point = false;
    const char *at = text + (*text == '+');
    for (; isdigit((unsigned char)*at) || (*at == '.' && !point); at++) {
        if (*at == '.') {
            point = true;
            continue;
        }
        any = true;
        digits = times(digits, 10);
        if (digits != ~(wide)0)
            digits += (wide)(*at - '0');
        decimals += point;
    }
    if (!any || !parse_suffix(at, &two, &ten))
        return false;
    /* Quantities are kept in thousandths and rounded up, as Kubernetes does (resource.Quantity):
     * one that asks for little must not become nothing. */
    ten += 3 - decimals; /* thousandths */
    ten = ten > MAX_EXPONENT ? MAX_EXPONENT : ten < -MAX_EXPONENT ? -MAX_EXPONENT : ten;
    wide milli = times(times(digits, power(2, two)), power(10, ten));
    wide divisor = power(10, -ten);
    milli = milli / divisor + (milli % divisor ? 1 : 0);
    *ret_milli = milli > INT64_MAX ? INT64_MAX : (int64_t)milli;
    return true;
}

/* Where a resource is or belongs. */
static size_t find_index(const struct quantities *list, const char *resource, bool *ret_there)
{
    size_t at = 0;
    while (at < list->count && strcmp(list->items[at].resource, resource) < 0)
        at++;
    *ret_there = at < list->count && strcmp(list->items[at].resource, resource) == 0;
    return at;
}

int64_t quantities_get(const struct quantities *list, const char *resource)
{
    bool there;
    size_t at = find_index(list, resource, &there);
    return there ? list->items[at].milli : 0;
}

void quantities_set(struct quantities *list, const char *resource, int64_t milli,
                    struct arena *arena)
{
    bool there;
    size_t at = find_index(list, resource, &there);
    if (!there) {
        struct quantity *more = arena_array(arena, struct quantity, list->count + 1);
        if (list->count) {
            memcpy(more, list->items, at * sizeof *more);
            memcpy(more + at + 1, list->items + at, (list->count - at) * sizeof *more);
        }
        list->items = more;
        list->count++;
    }
    list->items[at] = (struct quantity){.resource = resource, .milli = milli};
}

void quantities_add(struct quantities *list, const struct quantities *more, int64_t count,
                    struct arena *arena)
{
    for (size_t i = 0; i < more->count; i++) {
        int64_t sum;
        if (__builtin_mul_overflow(more->items[i].milli, count, &sum) ||
            __builtin_add_overflow(sum, quantities_get(list, more->items[i].resource), &sum))
            sum = INT64_MAX;
        quantities_set(list, more->items[i].resource, sum, arena);
    }
}

void quantities_raise(struct quantities *list, const struct quantities *least, struct arena *arena)
{
    for (size_t i = 0; i < least->count; i++)
        if (quantities_get(list, least->items[i].resource) < least->items[i].milli)
            quantities_set(list, least->items[i].resource, least->items[i].milli, arena);
}

bool quantities_equal(const struct quantities *a, const struct quantities *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (a->items[i].milli != b->items[i].milli ||
            strcmp(a->items[i].resource, b->items[i].resource) != 0)
            return false;
    return true;
}
