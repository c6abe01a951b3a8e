/* Checkpoints that others saved. */
#include "agent/checkpoint/checkpoint_files.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

/* What accelerate, Trainer and PyTorch's DCP save, none of which is read: its name; NULL: none. */
static const char *foreign_in(const char *dir, struct arena *arena)
{
    static const char *const names[] = {"pytorch_model_fsdp_0/.metadata",
                                        ".metadata",
                                        "pytorch_model_fsdp.bin",
                                        "optimizer.bin",
                                        "optimizer.pt",
                                        "pytorch_model.bin"};
    for (size_t i = 0; i < array_length(names); i++)
        if (access(arena_printf(arena, "%s/%s", dir, names[i]), F_OK) == 0)
            return names[i];
    return NULL;
}

/* The same in the directory, or in one in it, as Trainer's output_dir has them (checkpoint-500). */
static const char *find_foreign(const char *dir, struct arena *arena)
{
    struct dirent **entries;
    const char *found = foreign_in(dir, arena);
    int count = found ? 0 : scandir(dir, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        const char *below = found || name[0] == '.'
                                ? NULL
                                : foreign_in(arena_printf(arena, "%s/%s", dir, name), arena);
        if (below)
            found = arena_printf(arena, "%s/%s", name, below);
        free(entries[i]);
    }
    if (count > 0)
        free(entries);
    return found;
}

int checkpoint_check_foreign(const char *dir, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    const char *foreign = find_foreign(dir, arena);
    if (foreign)
        return error_set(err, ERR_NOT_FOUND,
                         "%s: %s is PyTorch's, whose pickles are not read: have its tool write the "
                         "weights as safetensors (accelerate merge-weights, save_pretrained), and "
                         "begin with them by --init_weights",
                         dir, foreign);
    return 0;
}
