/* Files that survive a crash: written, synced, and put in place by one rename. Every change to the
 * file system goes through a table of operations that the caller gives. So a test can make the n-th
 * one fail, or be the last. Knows no formats. */
#ifndef SHOAL_BASE_DURABLE_H
#define SHOAL_BASE_DURABLE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Like the system calls of these names: -1 and errno on failure. */
struct file_ops {
    void *ctx;                                  /* the first argument of each */
    int (*create)(void *ctx, const char *path); /* open for writing; the file must not exist */
    ssize_t (*write)(void *ctx, int fd, const void *data, size_t bytes);
    int (*fsync)(void *ctx, int fd);
    int (*close)(void *ctx, int fd);
    int (*mkdir)(void *ctx, const char *path);
    int (*sync_dir)(void *ctx, const char *path); /* makes the directory's entries durable */
    int (*rename)(void *ctx, const char *from, const char *to);
    int (*exchange)(void *ctx, const char *a, const char *b); /* swaps two names in one step */
    int (*remove)(void *ctx, const char *path);               /* a file or an empty directory */
};

extern const struct file_ops file_ops_system;

/* A file being written. Its size and checksum are counted as it goes. */
struct durable_file;

int durable_create(const struct file_ops *ops, const char *path, struct durable_file **ret_file,
                   struct error *err);
/* After a failure the file can only be abandoned. A full disk is ERR_NO_SPACE and says how many
 * bytes were still to be written. */
int durable_write(struct durable_file *file, const void *data, size_t bytes, struct error *err);

struct durable_result {
    int64_t bytes;
    uint64_t xxh64; /* of the whole content, seed 0 */
};
/* Syncs and closes; the file's entry in its directory still needs durable_sync_dir. On failure the
 * file is removed. Frees `file` either way. */
int durable_finish(struct durable_file *file, struct durable_result *ret_result, struct error *err);
void durable_abandon(struct durable_file *file); /* closes, removes, frees; NULL-safe */

/* A whole small file: create, write, finish. */
int durable_write_file(const struct file_ops *ops, const char *path, const void *data, size_t bytes,
                       struct durable_result *ret_result, struct error *err);

int durable_sync_dir(const struct file_ops *ops, const char *path, struct error *err);
int durable_make_dir(const struct file_ops *ops, const char *path, struct error *err);
/* Makes the directory and those above it, durably; one that is there is fine. */
int durable_make_dirs(const struct file_ops *ops, const char *path, struct error *err);

/* Whether files can be made in the directory, which is made if need be: makes one
 * and removes it. */
int durable_try_dir(const struct file_ops *ops, const char *path, struct error *err);

/* Gives `from` the name `to` in the same directory and makes that durable. A file is replaced by a
 * file; a directory is swapped out for a directory in the same step and stays as `from`: the caller
 * removes it then. File systems that cannot swap (NFS, Lustre) take three steps: whoever is killed
 * between them leaves the old directory as "<to>.shoal-replaced". A directory is never replaced by
 * a file. */
int durable_rename(const struct file_ops *ops, const char *from, const char *to, struct error *err);

/* Names while something is written: "<name>.tmp-<16 random hex digits>", which nobody else gives to
 * what is theirs. The caller frees. */
char *durable_temp_name(const char *name);
/* Whether `name` is one that durable_temp_name gives, of the name `of`, or of any if
 * that is NULL. */
bool durable_is_temp(const char *name, const char *of);
/* Whether the directory at `path` is an old one that was left so, and the new one is
 * in its place. */
bool durable_is_replaced(const char *path);
/* Removes files with temporary names of `path` from its directory; never directories. */
int durable_remove_temp_files(const struct file_ops *ops, const char *path, struct error *err);

/* Removes a file or a directory with all below it; nothing there is fine. */
int durable_remove_tree(const struct file_ops *ops, const char *path, struct error *err);
#endif
