#include "agent/dataset/masking.h"

#include "agent/dataset/sampler.h"
#include "kernels/random.h"

/* Numbers of the keys: the data's random numbers are apart from each other and from the model's. */
enum {
    KEY_CHOOSE = 0x6d61736b,
    KEY_REPLACE = 0x6d61736c,
    KEY_TOKEN = 0x6d61736d,
    KEY_PAIR = 0x70616972
};

static uint64_t key_of(uint64_t seed, uint64_t epoch, int64_t sample, uint64_t what)
{
    return random_key(seed, epoch, what, (uint64_t)sample);
}

static bool is_kept(const struct masking *masking, int32_t id)
{
    bool kept = false;
    for (size_t i = 0; i < sizeof masking->kept / sizeof masking->kept[0]; i++)
        kept = kept || id == masking->kept[i];
    return kept;
}

int64_t masking_apply(const struct masking *masking, uint64_t epoch, int64_t sample, int32_t *ids,
                      int64_t count, int32_t *targets, int32_t ignored)
{
    const struct masking *m = masking;
    uint64_t choose = key_of(m->seed, epoch, sample, KEY_CHOOSE);
    uint64_t replace = key_of(m->seed, epoch, sample, KEY_REPLACE);
    uint64_t token = key_of(m->seed, epoch, sample, KEY_TOKEN);
    int64_t chosen = 0;
    for (int64_t i = 0; i < count; i++) {
        targets[i] = ignored;
        if (is_kept(m, ids[i]) || random_uniform(choose, (uint64_t)i) >= m->probability)
            continue;
        targets[i] = ids[i];
        chosen++;
        /* BERT (Devlin et al. 2019): of the chosen tokens 80 % become [MASK], 10 % another token,
         * and 10 % stay. A model that only ever sees [MASK] would learn nothing for texts without
         * it. */
        float how = random_uniform(replace, (uint64_t)i);
        if (how < 0.8F)
            ids[i] = m->mask;
        else if (how < 0.9F)
            ids[i] = (int32_t)sampler_random_below(token, (uint64_t)i, m->vocabulary);
    }
    return chosen;
}

bool masking_next_is_random(uint64_t seed, uint64_t epoch, int64_t sample)
{
    return random_uniform(key_of(seed, epoch, sample, KEY_PAIR), 0) < 0.5F;
}

int64_t masking_random_next(uint64_t seed, uint64_t epoch, int64_t sample, int attempt,
                            int64_t bound)
{
    return sampler_random_below(key_of(seed, epoch, sample, KEY_PAIR), 1 + (uint64_t)attempt,
                                bound);
}
