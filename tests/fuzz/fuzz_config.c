/* A configuration file of the agent, or of accelerate (by the first byte): whatever the bytes,
 * there is a message, or a configuration that is printed. */
#include "tests/fuzz/fuzz.h"

#include "agent/config/config.h"
#include "base/mem.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *no_environment(void *ctx, const char *name)
{
    (void)ctx, (void)name;
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    auto_arena struct arena *arena = arena_open();
    struct config *config = arena_new(arena, struct config);
    struct error err = {0};
    int file = memfd_create("fuzz", MFD_CLOEXEC);
    assert(file >= 0 && write(file, data + 1, size - 1) == (ssize_t)size - 1);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    const char *own[] = {"--config", path};
    const char *accelerate[] = {"--preset", "accelerate", "--config_file", path};
    int result = data[0] & 1
                     ? config_parse(4, accelerate, no_environment, NULL, arena, config, &err)
                     : config_parse(2, own, no_environment, NULL, arena, config, &err);
    close(file);
    assert(result == 0 || err.msg[0]);
    if (result == 0) {
        auto_str struct str out;
        str_init(&out, 1 << 20);
        config_yaml(config, &out);
    }
    return 0;
}
