#include "tests/agent/world_data.h"

#include <math.h>

struct model *world_model(struct arena *arena, const struct world *w)
{
    if (w->language)
        return architecture_build(arena, w->language);
    return w->llama ? model_llama_new(arena, w->llama, -1) : model_mnist_new(arena, &w->shape);
}

uint32_t world_hash(uint32_t index, uint32_t stream)
{
    uint32_t h = index + (stream + 1) * 0x9e3779b9u;
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    return h ^ h >> 16;
}

float world_weight(const struct param *p, int64_t i)
{
    /* init.b is 1 / sqrt(fan_in) rounded to float: take the exact one */
    double fan_in = round(1.0 / ((double)p->init.b * p->init.b));
    double unit = world_hash((uint32_t)i, (uint32_t)p->index) / 2147483648.0 - 1.0;
    return (float)(unit * (1.0 / sqrt(fan_in)));
}

static int32_t world_label(int64_t sample)
{
    return (int32_t)(world_hash((uint32_t)sample, 101) % 10);
}

static void world_image(int64_t sample, int64_t side, float *ret_pixels)
{
    for (int64_t p = 0; p < side * side; p++) {
        uint32_t byte = world_hash((uint32_t)(sample * side * side + p), 100) >> 25;
        if (p / side * 10 / side == world_label(sample))
            byte += 128;
        ret_pixels[p] = ((float)byte / 255.0f - 0.1307f) / 0.3081f;
    }
}

void world_sample(const struct world *w, int64_t sample, float *input, int32_t *tokens,
                  int32_t *target)
{
    if (!w->llama) {
        world_image(sample, w->shape.height, input);
        *target = world_label(sample);
        return;
    }
    uint32_t V = (uint32_t)w->llama->vocab_size;
    for (int64_t t = 0; t < w->T; t++) {
        uint32_t index = (uint32_t)(sample * (w->T + 1) + t);
        tokens[t] = (int32_t)(world_hash(index, 102) % V);
        target[t] = (int32_t)(world_hash(index + 1, 102) % V);
    }
}

struct mnist_shape world_small_shape(void)
{
    return (struct mnist_shape){
        .height = 12, .width = 12, .channels1 = 4, .channels2 = 6, .hidden = 16, .classes = 10};
}

struct llama_config world_llama(void)
{
    struct llama_config c = llama_default_config;
    c.vocab_size = 37;
    c.hidden_size = 24;
    c.intermediate_size = 20;
    c.num_hidden_layers = 3;
    c.num_attention_heads = 4;
    c.num_key_value_heads = 2;
    c.max_position_embeddings = 16;
    c.initializer_range = 0.2f;
    return c;
}
