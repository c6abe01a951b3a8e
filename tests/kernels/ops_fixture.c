#include "tests/kernels/ops_fixture.h"
#include "kernels/random.h"

#include <math.h>
#include <string.h>

static int world_open(void **state, int threads)
{
    static struct world world;
    struct error err;
    memset(&world, 0, sizeof world);
    assert_ok(device_open(support_device(), threads, &world.device, &err), &err);
    assert_ok(stream_open(world.device, "ops", &world.stream, &err), &err);
    world.ops = device_ops(world.device);
    world.arena = arena_open();
    *state = &world;
    return 0;
}

int world_setup(void **state)
{
    return world_open(state, 1);
}

int world_setup_two_threads(void **state)
{
    return world_open(state, 2);
}

int world_teardown(void **state)
{
    struct world *world = (struct world *)*state;
    struct memory_use use;
    device_memory_use(world->device, &use);
    assert_int_equal(use.current_total_bytes, 0);
    stream_close(world->stream);
    device_close(world->device);
    arena_close(world->arena);
    return 0;
}

float *host_zeros(struct world *world, int64_t count)
{
    return arena_array(world->arena, float, count);
}

float *host_random(struct world *world, int64_t count, float low, float high)
{
    float *values = host_zeros(world, count);
    world->next_key++;
    for (int64_t i = 0; i < count; i++)
        values[i] = low + (high - low) * random_uniform(world->next_key, (uint64_t)i);
    return values;
}

double *to_double(struct world *world, const float *values, int64_t count)
{
    double *doubles = arena_array(world->arena, double, count);
    for (int64_t i = 0; values && i < count; i++)
        doubles[i] = values[i];
    return doubles;
}

enum { GUARDS = 16 }; /* bytes behind an array that no op may touch */

void *to_device_bytes(struct world *world, const void *host, size_t bytes)
{
    char *image = arena_array(world->arena, char, bytes + GUARDS);
    memcpy(image, host, bytes);
    memset(image + bytes, 0x5a, GUARDS);
    void *memory;
    struct error err;
    assert_ok(device_alloc(world->device, MEMORY_INPUT, bytes + GUARDS, "test", &memory, &err),
              &err);
    stream_copy(world->stream, memory, image, bytes + GUARDS);
    return memory;
}

float *to_device(struct world *world, const float *host, int64_t count)
{
    return (float *)to_device_bytes(world, host, (size_t)count * sizeof *host);
}

void from_device_bytes(struct world *world, void *host, void *memory, size_t bytes)
{
    unsigned char *image = arena_array(world->arena, unsigned char, bytes + GUARDS);
    struct error err;
    stream_copy(world->stream, image, memory, bytes + GUARDS);
    assert_ok(stream_sync(world->stream, &err), &err);
    for (int i = 0; i < GUARDS; i++)
        assert_int_equal(image[bytes + (size_t)i], 0x5a);
    memcpy(host, image, bytes);
    device_free(world->device, memory);
}

float *from_device(struct world *world, float *memory, int64_t count)
{
    float *host = host_zeros(world, count);
    from_device_bytes(world, host, memory, (size_t)count * sizeof *host);
    return host;
}

void assert_near(const float *got, const double *want, int64_t count, double tolerance,
                 const char *what)
{
    for (int64_t i = 0; i < count; i++) {
        if (fabs(got[i] - want[i]) <= tolerance * (1 + fabs(want[i])))
            continue;
        print_error("%s: element %lld is %.9g, should be %.9g\n", what, (long long)i,
                    (double)got[i], want[i]);
        fail();
    }
}

double *reference_run(struct world *world, const struct reference *r)
{
    double *y = arena_array(world->arena, double, r->y_count);
    r->forward(r->shape, y, r->in);
    return y;
}

void assert_gradient(struct world *world, const struct reference *r, int which, const float *dy,
                     const float *gradient, const char *what)
{
    const double step = 1e-6, tolerance = 2e-5;
    double *middle = r->in[which];
    struct reference moved = *r;
    for (int direction = 0; direction < 4; direction++) {
        float *d = host_random(world, r->in_count[which], -1, 1);
        double want = 0, got = 0, size = 0;
        for (int side = -1; side <= 1; side += 2) {
            double *in = arena_array(world->arena, double, r->in_count[which]);
            for (int64_t i = 0; i < r->in_count[which]; i++)
                in[i] = middle[i] + side * step * d[i];
            moved.in[which] = in;
            const double *y = reference_run(world, &moved);
            for (int64_t i = 0; i < r->y_count; i++)
                want += side * y[i] * dy[i] / (2 * step);
        }
        for (int64_t i = 0; i < r->in_count[which]; i++) {
            got += (double)gradient[i] * d[i];
            size += fabs((double)gradient[i] * d[i]);
        }
        if (!(fabs(got - want) <= tolerance * (1 + size))) {
            print_error("%s: slope is %.9g, should be %.9g\n", what, got, want);
            fail();
        }
    }
}
