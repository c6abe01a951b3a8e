/* PyTorch's figures (tests/data/parity), as floats. */
#ifndef SHOAL_TESTS_AGENT_FIXTURE_H
#define SHOAL_TESTS_AGENT_FIXTURE_H

#include <stdint.h>

struct fixture_file;

/* name: "mnist_small.safetensors". Whatever is wrong fails the test. */
struct fixture_file *fixture_open(const char *name);
void fixture_close(struct fixture_file *file);

/* The values of a tensor (F32, or I64 as floats) whose name is formatted; lives as long as the
 * file. */
const float *fixture_get(struct fixture_file *file, int64_t *ret_count, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* An entry of the file's metadata; lives as long as the file. */
const char *fixture_note(struct fixture_file *file, const char *key);

/* |got - expected| / |expected|, as vectors. */
double fixture_distance(const float *got, const float *expected, int64_t count);

/* Fails the test if a value is further than `absolute` + `relative` * |expected| from the expected
 * one; `what` says of what. */
void fixture_compare(const char *what, const float *got, const float *expected, int64_t count,
                     double absolute, double relative);
#endif
