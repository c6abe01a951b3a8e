#include "operator/kube/kube.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Adds "/" and the escaped segment; returns where the text ends, or `size` if it does not fit. */
static size_t add_segment(char *out, size_t size, size_t length, const char *segment)
{
    if (length + 1 >= size)
        return size;
    out[length++] = '/';
    for (const unsigned char *c = (const unsigned char *)segment; *c && length < size; c++) {
        bool plain = isalnum(*c) || strchr("-._~", *c);
        int count = snprintf(out + length, size - length, plain ? "%c" : "%%%02X", *c);
        length = (size_t)count < size - length ? length + (size_t)count : size;
    }
    return length;
}

bool kube_path(char *out, size_t size, const char *group, const char *version, const char *plural,
               const char *namespace_, const char *name, const char *subresource)
{
    const char *segments[9];
    size_t count = 0, length = 0;
    /* The core group has no name and lives under /api/v1, all others under /apis/GROUP/VERSION. */
    segments[count++] = *group ? "apis" : "api";
    if (*group)
        segments[count++] = group;
    segments[count++] = version;
    if (namespace_) {
        segments[count++] = "namespaces";
        segments[count++] = namespace_;
    }
    segments[count++] = plural;
    if (name)
        segments[count++] = name;
    if (name && subresource)
        segments[count++] = subresource;
    for (size_t i = 0; i < count; i++)
        length = add_segment(out, size, length, segments[i]);
    return length < size;
}
