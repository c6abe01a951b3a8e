/* Bytes for a reader that stands still: kept in order, up to a limit, and never waited for. */
#include "base/mem.h"
#include "cli/output.h"
#include "tests/support.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void open_pipe(struct output *output, int ends[2])
{
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    output_open(output, ends[1]);
}

static void close_pipe(struct output *output, int ends[2])
{
    output_close(output);
    close(ends[0]);
    close(ends[1]);
}

/* Byte i of the stream: no two chunks alike. */
static char byte_at(size_t i)
{
    return (char)(i * 7 + i / 251);
}

static void add(struct output *output, size_t *added, size_t count)
{
    auto_free char *bytes = xmalloc(count);
    for (size_t i = 0; i < count; i++)
        bytes[i] = byte_at((*added)++);
    assert_true(output_add(output, bytes, count));
}

static void test_a_reader_that_comes_late(void **state)
{
    (void)state;
    struct output output;
    int ends[2];
    open_pipe(&output, ends);
    size_t added = 0, taken = 0;
    while (output_has_room(&output)) {
        add(&output, &added, 10007);
        output_flush(&output); /* returns, though nobody reads */
    }
    assert_false(output_wait(&output, -1, 0));
    assert_true(added >= OUTPUT_ENOUGH_BYTES);
    add(&output, &added, 131072); /* what an ended process left */
    while (taken < added) {
        char bytes[5000];
        ssize_t count = read(ends[0], bytes, sizeof bytes);
        assert_true(count > 0);
        for (ssize_t i = 0; i < count; i++)
            assert_true(bytes[i] == byte_at(taken++));
        output_flush(&output);
    }
    assert_true(output_has_room(&output));
    assert_false(output_wait(&output, -1, -1)); /* nothing to wait for */
    close_pipe(&output, ends);
}

static void test_the_cap(void **state)
{
    (void)state;
    struct output output;
    int ends[2];
    open_pipe(&output, ends);
    auto_free char *bytes = xcalloc(1, OUTPUT_MAX_BYTES);
    assert_true(output_add(&output, bytes, OUTPUT_MAX_BYTES));
    assert_false(output_add(&output, bytes, 1));
    close_pipe(&output, ends);
}

static void test_a_reader_that_goes(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    struct output output;
    int ends[2];
    open_pipe(&output, ends);
    close(ends[0]);
    assert_true(output_add(&output, "lost", 4));
    output_flush(&output);
    assert_int_equal(output.failure, EPIPE);
    assert_true(output_add(&output, "lost, too", 9));
    assert_int_equal(output.waiting.length, 0);
    output_close(&output);
    close(ends[1]);
}

/* Whoever shares our stdout goes on with a file that blocks. */
static void test_the_others_file(void **state)
{
    (void)state;
    struct output output;
    int ends[2];
    open_pipe(&output, ends);
    assert_true(fcntl(output.fd, F_GETFL) & O_NONBLOCK);
    assert_false(fcntl(ends[1], F_GETFL) & O_NONBLOCK);
    close_pipe(&output, ends);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_reader_that_comes_late),
        cmocka_unit_test(test_the_cap),
        cmocka_unit_test(test_a_reader_that_goes),
        cmocka_unit_test(test_the_others_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
