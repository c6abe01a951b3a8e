#include "agent/launch/mapped_file.h"

#include "base/mem.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 4096 + 128 }; /* a path is shorter; what is longer is cut */

/* A number in hexadecimal digits; *at is left behind it. */
static uintptr_t take_hex(const char **at)
{
    uintptr_t number = 0;
    for (;; (*at)++) {
        char c = **at;
        if (c >= '0' && c <= '9')
            number = number * 16 + (uintptr_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            number = number * 16 + (uintptr_t)(c - 'a' + 10);
        else
            return number;
    }
}

/* "FROM-TO perms offset device inode   /path". Whether the address is there; *ret_path: "" if it is
 * no file's. */
static bool is_at(const char *line, uintptr_t address, const char **ret_path)
{
    uintptr_t from = take_hex(&line);
    line += *line == '-';
    uintptr_t to = take_hex(&line);
    const char *path = strchr(line, '/');
    *ret_path = path ? path : "";
    return address >= from && address < to;
}

bool mapped_file(const void *address, char *out, size_t out_bytes)
{
    static char line[LINE_BYTES]; /* a handler's stack is small */
    char c[512];
    const char *path = "";
    size_t length = 0;
    ssize_t n;
    bool found = false;
    auto_close int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && !found && (n = read(fd, c, sizeof c)) > 0)
        for (ssize_t i = 0; i < n && !found; i++) {
            if (c[i] != '\n') {
                if (length < sizeof line - 1)
                    line[length++] = c[i];
                continue;
            }
            line[length] = '\0';
            length = 0;
            found = is_at(line, (uintptr_t)address, &path);
        }
    if (!found || !path[0])
        return false;
    length = strnlen(path, out_bytes - 1);
    memcpy(out, path, length);
    out[length] = '\0';
    return true;
}
