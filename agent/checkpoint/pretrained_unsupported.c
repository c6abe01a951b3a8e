#include "agent/checkpoint/pretrained_unsupported.h"

#include "base/mem.h"

#include <glob.h>

char *pretrained_find_unsupported(const char *dir)
{
    /* Weights in formats that are not read: pickles execute code when they are loaded. The last one
     * are shards whose index is missing. */
    static const char *const patterns[] = {
        "pytorch_model*.bin",
        "model*.bin",
        "model*.pt",
        "model*.pth",
        "consolidated*.pt*",
        "tf_model.h5",
        "model*.ckpt",
        "flax_model.msgpack",
        "*.gguf",
        "model-*-of-*.safetensors",
    };
    char *path = NULL;
    for (size_t i = 0; i < array_length(patterns) && !path; i++) {
        auto_free char *pattern = xasprintf("%s/%s", dir, patterns[i]);
        glob_t found = {0};
        if (glob(pattern, 0, NULL, &found) == 0)
            path = xstrdup(found.gl_pathv[0]);
        globfree(&found);
    }
    return path;
}
