#include "tests/operator/histories/explore.h"

#include "base/log.h"
#include "tests/operator/histories/region.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 1000, MAX_CALM = 400 };

/* The states that were met: a set by their hashes, with open addressing. */
struct states {
    uint64_t *hashes; /* [size], 0: none; the lowest bits say what is known of it */
    size_t size, count;
};

enum { COMES_TO_REST = 1, SEARCHED = 2, THERE = 4 };
#define FLAGS ((uint64_t)(COMES_TO_REST | SEARCHED | THERE))

struct exploration {
    const struct world_setting *setting;
    struct explored found;
    struct states states;
    struct region_state at[MAX_DEPTH], begin, kept;
    struct choice path[MAX_DEPTH + MAX_CALM]; /* from the beginning to here */
    int length;
    bool is_at_rest; /* the last check was of a rest */
};

static struct exploration exploration;

static uint64_t *find(const struct states *states, uint64_t hash)
{
    size_t i = (hash >> 8) & (states->size - 1);
    while (states->hashes[i] && (states->hashes[i] | FLAGS) != (hash | FLAGS))
        i = (i + 1) & (states->size - 1);
    return &states->hashes[i];
}

static void grow(struct states *states)
{
    struct states more = *states;
    more.size = states->size ? 2 * states->size : 1 << 16;
    more.hashes = calloc(more.size, sizeof *more.hashes);
    assert_non_null(more.hashes);
    for (size_t i = 0; i < states->size; i++)
        if (states->hashes[i])
            *find(&more, states->hashes[i]) = states->hashes[i];
    free(states->hashes);
    *states = more;
}

/* The state as it is in the set. Lives until the next one is met. */
static uint64_t *meet(uint64_t hash)
{
    struct states *states = &exploration.states;
    if (2 * states->count >= states->size)
        grow(states);
    uint64_t *state = find(states, hash);
    if (!*state) {
        *state = (hash & ~FLAGS) | THERE;
        states->count++;
    }
    return state;
}

/* ---- inside the region ---- */

static uint64_t hash_here(void)
{
    region_enter();
    uint64_t hash = world_hash();
    region_leave();
    return hash;
}

static void perform(struct choice choice)
{
    assert_true(exploration.length < MAX_DEPTH + MAX_CALM);
    exploration.path[exploration.length++] = choice;
    exploration.found.edges++;
    region_enter();
    world_perform(choice);
    region_leave();
}

/* The way here again, with all of it told: it fails again. */
static void tell_again(struct simulation *s)
{
    (void)s;
    region_leave();
    region_bring_back(&exploration.begin);
    region_enter();
    log_set_level(LOG_INFO);
    world->s.is_told = true;
    world->s.tell_again = NULL;
    str_printf(&world->s.history, "%s\n", exploration.setting->name);
    for (int i = 0; i < exploration.length; i++)
        world_perform(exploration.path[i]);
    if (exploration.is_at_rest)
        world_check_rest();
}

static void check_rest(void)
{
    region_keep(&exploration.kept);
    exploration.is_at_rest = true;
    region_enter();
    world_check_rest();
    region_leave();
    exploration.is_at_rest = false;
    region_bring_back(&exploration.kept);
    exploration.found.rests++;
}

/* ---- the search ---- */

static bool find_calm(struct choice *ret_choice)
{
    region_enter();
    bool found = world_calm_choice(ret_choice);
    region_leave();
    return found;
}

/* From here on nothing more goes wrong: the world comes to rest. What was met on the way does,
 * too. */
static void check_calm(void)
{
    static uint64_t passed[MAX_CALM];
    int count = 0, length = exploration.length;
    struct choice choice;
    for (;; count++) {
        simulation_check(&world->s, count < MAX_CALM, "no rest after %d steps", MAX_CALM);
        passed[count] = hash_here();
        if (*meet(passed[count]) & COMES_TO_REST)
            break;
        if (!find_calm(&choice)) {
            check_rest();
            count++;
            break;
        }
        perform(choice);
    }
    if (count > exploration.found.longest_calm)
        exploration.found.longest_calm = count;
    for (int i = 0; i < count; i++)
        *meet(passed[i]) |= COMES_TO_REST;
    exploration.length = length;
}

static void search(void)
{
    uint64_t *state = meet(hash_here());
    bool rests = *state & COMES_TO_REST;
    if (*state & SEARCHED)
        return;
    *state |= SEARCHED;
    exploration.found.states++;
    int depth = exploration.length;
    assert_true(depth < MAX_DEPTH);
    if (depth > exploration.found.depth)
        exploration.found.depth = depth;
    struct region_state *here = &exploration.at[depth];
    region_keep(here);
    if (!rests) {
        check_calm();
        region_bring_back(here);
    }
    struct choice choices[WORLD_MAX_CHOICES];
    region_enter();
    size_t count = world_choices(choices);
    region_leave();
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            region_bring_back(here);
        exploration.length = depth;
        perform(choices[i]);
        search();
    }
}

struct explored explore(const struct world_setting *setting)
{
    exploration.setting = setting;
    exploration.found = (struct explored){0};
    exploration.length = 0;
    region_open();
    region_enter();
    world_open(setting);
    world->s.tell_again = tell_again;
    region_leave();
    region_keep(&exploration.begin);
    search();
    region_bring_back(&exploration.begin);
    free(exploration.states.hashes);
    exploration.states = (struct states){0};
    for (int i = 0; i < MAX_DEPTH; i++)
        region_drop(&exploration.at[i]);
    region_drop(&exploration.begin);
    region_drop(&exploration.kept);
    return exploration.found;
}
