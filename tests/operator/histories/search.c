#include "tests/operator/histories/search.h"

#include "base/log.h"
#include "tests/operator/histories/allowance.h"
#include "tests/operator/histories/parsed.h"
#include "tests/operator/histories/region.h"
#include "tests/operator/histories/sharing.h"
#include "tests/operator/histories/visited.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 1000, MAX_CALM = 400, MAX_STATE_BYTES = 4 << 20 };

/* What may be done in a state on the way. */
struct level {
    struct choice choices[WORLD_MAX_CHOICES];
    size_t count, next;
    struct region_state here; /* valid if there is more than one choice, or it is searched */
};

/* Where to go on, for another process. */
struct handed {
    struct choice path[MAX_DEPTH];
    int length; /* the last one is not done yet */
};

static struct {
    const struct world_setting *setting;
    struct exploring exploring;
    struct explored found;
    struct visited *visited, *rests; /* the states that were met; those that are at rest */
    struct sharing *sharing;         /* NULL: there is one process */
    struct allowances allowances;
    struct level levels[MAX_DEPTH];
    struct region_state begin, kept;
    struct choice path[MAX_DEPTH + MAX_CALM]; /* from the beginning to here */
    int length;
    bool is_at_rest; /* the last check was of a rest */
} exploration;

/* ---- inside the region ---- */

static uint64_t hash_here(void)
{
    region_enter();
    uint64_t hash = world_hash();
    region_leave();
    return hash;
}

static int allowance_here(void)
{
    int left[ALLOWED_KINDS];
    world_allowance(left);
    return allowances_index(&exploration.allowances, left);
}

static size_t choices_here(struct choice *ret_choices)
{
    region_enter();
    size_t count = world_choices(ret_choices);
    region_leave();
    return count;
}

static bool find_calm(struct choice *ret_choice)
{
    region_enter();
    bool found = world_calm_choice(ret_choice);
    region_leave();
    return found;
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

/* ---- rests ---- */

static void check_rest(void)
{
    region_keep(&exploration.kept);
    exploration.is_at_rest = true;
    region_enter();
    uint64_t hash = world_hash_rest();
    world_check_rest();
    region_leave();
    exploration.is_at_rest = false;
    region_bring_back(&exploration.kept);
    if (!visited_claim(exploration.rests, hash, 0, 1))
        return;
    exploration.found.rests++;
    exploration.found.rests_sum += hash;
}

/* What is asked of a rest (world_check_rest) depends on what has happened. */
static uint64_t rest_flag(void)
{
    return world_failures_show() ? VISITED_RESTS_FULLY : VISITED_RESTS;
}

static bool rests_by(uint64_t hash, uint64_t flag)
{
    return visited_flags(exploration.visited, hash) & flag;
}

/* From here on nothing more goes wrong: the world comes to rest. What was met on the way does,
 * too. */
static void check_calm(void)
{
    static uint64_t passed[MAX_CALM];
    int count = 0, length = exploration.length;
    struct choice choice;
    uint64_t flag = rest_flag();
    for (;; count++) {
        simulation_check(&world->s, count < MAX_CALM, "no rest after %d steps", MAX_CALM);
        passed[count] = hash_here();
        if (rests_by(passed[count], flag))
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
        visited_set_flags(exploration.visited, passed[i], VISITED_RESTS | flag);
    exploration.length = length;
}

/* ---- the search ---- */

static bool is_same(struct choice a, struct choice b)
{
    return a.kind == b.kind && a.index == b.index && a.way == b.way;
}

/* The first state on the way that has a choice left; of a choice that leaves as much allowed as
 * before if `spares`. NULL: none. */
static struct level *level_left(bool spares)
{
    for (int depth = 0; depth < exploration.length; depth++) {
        struct level *level = &exploration.levels[depth];
        if (level->next < level->count && !(spares && world_spends(level->choices[level->next])))
            return level;
    }
    return NULL;
}

/* Another process waits for something to do. */
static void hand_on(void)
{
    static struct handed handed;
    struct level *level = level_left(true);
    if (!level)
        level = level_left(false);
    if (!level)
        return;
    size_t depth = (size_t)(level - exploration.levels);
    memcpy(handed.path, exploration.path, depth * sizeof handed.path[0]);
    handed.path[depth] = level->choices[level->next++];
    handed.length = (int)depth + 1;
    sharing_offer(exploration.sharing, &handed, level->here.bytes, level->here.used);
}

static bool search(void);

/* Tries all that may happen here. Returns whether what comes next if nothing goes wrong is among
 * it, and is known to come to rest. */
static bool search_from_here(struct level *level)
{
    int depth = exploration.length;
    struct choice calm;
    bool goes_on = find_calm(&calm), rests = false;
    for (level->next = 0; level->next < level->count;) {
        struct choice choice = level->choices[level->next];
        if (level->next++ > 0)
            region_bring_back(&level->here);
        exploration.length = depth;
        perform(choice);
        if (search() && goes_on && is_same(choice, calm))
            rests = true;
    }
    exploration.length = depth;
    return rests;
}

/* Whether this state is not worth to be remembered: a request has but to be answered; or an object
 * has changed that is shown next, and few other ways lead here. What comes next is remembered. */
static bool is_passed_by(const struct level *level)
{
    return exploration.exploring.reduces && level->count > 0 &&
           (world->moved || (world->sent_count && level->count == 1));
}

/* Returns whether it is known that this comes to rest. */
static bool search(void)
{
    int depth = exploration.length;
    simulation_check(&world->s, depth < MAX_DEPTH, "no rest after %d steps", MAX_DEPTH);
    struct level *level = &exploration.levels[depth];
    if (depth > exploration.found.depth)
        exploration.found.depth = depth;
    level->count = choices_here(level->choices);
    if (is_passed_by(level)) {
        if (level->count > 1)
            region_keep(&level->here);
        return search_from_here(level);
    }
    uint64_t hash = hash_here(), flag = rest_flag();
    int index = allowance_here();
    if (!visited_claim(exploration.visited, hash, index, exploration.allowances.below[index]))
        return rests_by(hash, flag);
    exploration.found.states++;
    if (exploration.sharing && sharing_is_wanted(exploration.sharing))
        hand_on();
    region_keep(&level->here);
    if (!search_from_here(level) && !rests_by(hash, flag)) {
        region_bring_back(&level->here);
        check_calm();
    }
    visited_set_flags(exploration.visited, hash, VISITED_RESTS | flag);
    return true;
}

struct explored search_all(void)
{
    search();
    return exploration.found;
}

struct explored search_for_others(void)
{
    static unsigned char bytes[MAX_STATE_BYTES];
    static struct handed handed;
    struct region_state state = {.bytes = bytes, .size = sizeof bytes};
    while (sharing_take(exploration.sharing, &handed, bytes, &state.used)) {
        region_bring_back(&state);
        memcpy(exploration.path, handed.path, (size_t)handed.length * sizeof handed.path[0]);
        for (int i = 0; i < handed.length; i++)
            exploration.levels[i].count = exploration.levels[i].next = 0;
        exploration.length = handed.length - 1;
        perform(handed.path[handed.length - 1]);
        search();
    }
    return exploration.found;
}

/* ---- life cycle ---- */

void search_open(const struct world_setting *setting, struct exploring exploring)
{
    exploration.setting = setting;
    exploration.exploring = exploring;
    exploration.found = (struct explored){0};
    exploration.length = 0;
    region_open();
    region_enter();
    world_open(setting);
    world->s.tell_again = tell_again;
    world->is_whole = !exploring.reduces;
    world_most_allowed(exploration.allowances.most);
    allowances_open(&exploration.allowances, exploring.reduces);
    world->compares = exploration.allowances.is_compared;
    region_leave();
    region_keep(&exploration.begin);
    exploration.visited = visited_open();
    exploration.rests = visited_open();
    exploration.sharing =
        exploring.processes > 1
            ? sharing_open(exploring.processes, sizeof(struct handed), MAX_STATE_BYTES)
            : NULL;
}

void search_close(void)
{
    region_bring_back(&exploration.begin);
    visited_close(exploration.visited);
    visited_close(exploration.rests);
    if (exploration.sharing)
        sharing_close(exploration.sharing);
    for (int i = 0; i < MAX_DEPTH; i++)
        region_drop(&exploration.levels[i].here);
    region_drop(&exploration.begin);
    region_drop(&exploration.kept);
    parsed_forget();
}
