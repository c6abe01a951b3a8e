/* What every test program needs: cmocka with the headers it wants first, and an error that must not
 * be. */
#ifndef SHOAL_TESTS_SUPPORT_H
#define SHOAL_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#include <cmocka.h> /* itself, it does not say that it is C */

/* The limit of what a test expects to come: an hour, which is no limit even for a machine that is
 * busy with other things. What hangs is ended sooner by what runs the test
 * (tests/runner/patience.c). */
enum { SUPPORT_PATIENCE_S = 3600, SUPPORT_PATIENCE_MS = SUPPORT_PATIENCE_S * 1000 };

/* Waits until the condition holds; fails the test if it never does. */
#define support_wait_until(condition)                                                              \
    for (int64_t waited_ms = 0; !(condition); waited_ms++)                                         \
    support_pause(waited_ms, #condition, __FILE__, __LINE__)
void support_pause(int64_t waited_ms, const char *condition, const char *file, int line);

/* The next of the deadlines with which a test tries whether what passes one is told. A busy machine
 * may be too slow to do before a short one what must be done before it. Fails the test after that
 * of five minutes. */
int64_t support_longer_ms(int64_t ms);

/* Fails the test with the error's text unless result is 0. */
#define assert_ok(result, err) support_assert_ok((result), (err), __FILE__, __LINE__)
void support_assert_ok(int result, const struct error *err, const char *file, int line);

/* Fails unless result is negative, err->code is `code` and the text contains `part`. */
#define assert_fails(result, err, code, part)                                                      \
    support_assert_fails((result), (err), (code), (part), __FILE__, __LINE__)
const char *support_error_name(enum error_code code); /* ERR_PEER is "peer" */
/* Whether it is so; tells if not. */
bool support_is_error(int result, const struct error *err, enum error_code code, const char *part);
void support_assert_fails(int result, const struct error *err, enum error_code code,
                          const char *part, const char *file, int line);

/* Fails unless the bytes are `hex`, two digits each. */
#define assert_hex(bytes, count, hex)                                                              \
    support_assert_hex((bytes), (count), (hex), __FILE__, __LINE__)
void support_assert_hex(const void *bytes, size_t count, const char *hex, const char *file,
                        int line);

/* A new empty directory below $TMPDIR or /tmp; the test removes it with support_remove_tree. Caller
 * frees. */
char *support_temp_dir(void);
void support_remove_tree(const char *path);
int support_count_entries(const char *path); /* of a directory, hidden ones left out */
/* A directory of its own around a test, as cmocka's setup and teardown: *state is its path. */
int support_enter_dir(void **state);
int support_leave_dir(void **state);

/* What is written to stderr between these two, which see it in its place. At most bytes - 1 of it.
 * One at a time. */
void support_stderr_begin(void);
void support_stderr_end(char *text, size_t bytes);

/* What tests of any device open: the environment variable SHOAL_TEST_DEVICE, else "cpu". */
const char *support_device(void);
/* Whether that is a GPU that is none: tests/emulation. */
bool support_is_emulated(void);

#ifdef __cplusplus
}
#endif
#endif
