#include "base/yaml_hint.h"

#include "base/mem.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

static const struct kind {
    const char *magic;
    size_t bytes;
    const char *what;
} kinds[] = {
    {"\x1f\x8b", 2, "this is gzip, not text: unpack it first (gunzip)"},
    {"\x28\xb5\x2f\xfd", 4, "this is zstd, not text: unpack it first (unzstd)"},
    {"\xfd"
     "7zXZ",
     5, "this is xz, not text: unpack it first (unxz)"},
    {"BZh", 3, "this is bzip2, not text: unpack it first (bunzip2)"},
    {"PK\x03\x04", 4, "this is a zip archive, not text: unpack it first (unzip)"},
    {"\x7f"
     "ELF",
     4, "this is a program (ELF), not text"},
    {"\xff\xfe\0\0", 4, "this is UTF-32, not UTF-8: convert it first (iconv -f UTF-32LE -t UTF-8)"},
};

/* A text of ASCII in UTF-16 or UTF-32 has a NUL in at least every second byte. */
static const char *wide_kind(const char *text, size_t bytes)
{
    if (bytes < 4 || (text[0] && text[1]))
        return NULL;
    if (!text[0] && !text[1] && !text[2] && text[3])
        return "this is UTF-32, not UTF-8: convert it first (iconv -f UTF-32BE -t UTF-8)";
    if (text[0] && !text[1] && !text[2] && !text[3])
        return "this is UTF-32, not UTF-8: convert it first (iconv -f UTF-32LE -t UTF-8)";
    if (!text[0] && text[1] && !text[2] && text[3])
        return "this is UTF-16, not UTF-8: convert it first (iconv -f UTF-16BE -t UTF-8)";
    if (text[0] && !text[1] && text[2] && !text[3])
        return "this is UTF-16, not UTF-8: convert it first (iconv -f UTF-16LE -t UTF-8)";
    return NULL;
}

bool yaml_hint_is_page(const char *text, size_t bytes)
{
    static const char *const begins[] = {"<!doctype html", "<html", "<?xml"};
    while (bytes > 0 && strchr(" \t\r\n", *text))
        text++, bytes--;
    for (size_t i = 0; i < array_length(begins); i++)
        if (bytes >= strlen(begins[i]) && strncasecmp(text, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

const char *yaml_hint_kind(const char *text, size_t bytes)
{
    enum { TAR_MAGIC = 257 };
    if (bytes > TAR_MAGIC + 5 && memcmp(text + TAR_MAGIC, "ustar", 5) == 0)
        return "this is a tar archive, not text: unpack it first (tar -xf)";
    for (size_t i = 0; i < array_length(kinds); i++)
        if (bytes >= kinds[i].bytes && memcmp(text, kinds[i].magic, kinds[i].bytes) == 0)
            return kinds[i].what;
    return wide_kind(text, bytes);
}

const char *yaml_hint_line(const char *text, size_t bytes, size_t line)
{
    const char *end = text + bytes;
    for (; line > 0; line--) {
        text = memchr(text, '\n', (size_t)(end - text));
        if (!text)
            return NULL;
        text++;
    }
    const char *line_end = memchr(text, '\n', (size_t)(end - text));
    line_end = line_end ? line_end : end;
    for (const char *c = text; c < line_end && (*c == ' ' || *c == '\t'); c++)
        if (*c == '\t')
            return "a tab: YAML is indented with blanks only";
    if (memmem(text, (size_t)(line_end - text), "{{", 2))
        return "{{ is of a template: render it first (helm template)";
    return NULL;
}
