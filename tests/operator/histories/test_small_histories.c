/* Every history of small jobs. The operator's cache, executor, queue and pass are those that ship;
 * the API server, kubelets and people around them are played (world.h). Without arguments a part is
 * tried that takes seconds; with "all" everything, in a process for each processor, which takes
 * three quarters of an hour of a processor. */
#include "tests/operator/histories/explore.h"

#include "base/log.h"
#include "base/mem.h"
#include "tests/operator/histories/region.h"
#include "tests/operator/histories/settings.h"
#include "tests/operator/histories/world.h"
#include "tests/support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- memory (region.h) ---- */

/* glibc's own, which are behind these names in each program. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void __libc_free(void *pointer);

void *malloc(size_t bytes)
{
    return region_is_entered() ? region_alloc(bytes) : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    size_t all;
    if (!region_is_entered())
        return __libc_calloc(count, bytes);
    if (__builtin_mul_overflow(count, bytes, &all))
        abort();
    return memset(region_alloc(all), 0, all);
}

void free(void *pointer)
{
    if (region_has(pointer))
        region_free(pointer);
    else
        __libc_free(pointer);
}

void *realloc(void *old, size_t bytes)
{
    if (!region_is_entered() && !region_has(old))
        return __libc_realloc(old, bytes);
    assert_true(!old || (region_is_entered() && region_has(old)));
    size_t had = old ? region_size(old) : 0;
    void *more = region_alloc(bytes);
    if (old)
        memcpy(more, old, had < bytes ? had : bytes);
    if (old)
        region_free(old);
    return more;
}

/* ---- jobs ---- */

static bool all;
static const char *only; /* the row of this name, else those with this in their names */

static bool is_a_row(const char *name)
{
    for (size_t i = 0; i < setting_count; i++)
        if (strcmp(settings[i].setting.name, name) == 0)
            return true;
    return false;
}

static bool is_chosen(const struct setting *setting)
{
    const char *name = setting->setting.name;
    if (!only)
        return setting->extent <= (all ? IN_ALL : ALWAYS);
    return is_a_row(only) ? strcmp(name, only) == 0 : strstr(name, only) != NULL;
}

static void print_found(const char *name, const struct explored *found)
{
    printf("# %-44s %9zu states %10zu edges, %3d deep, %5zu ends, rest after %2d\n", name,
           found->states, found->edges, found->depth, found->rests, found->longest_calm);
    fflush(stdout);
}

static int processes(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count > EXPLORE_MAX_PROCESSES ? EXPLORE_MAX_PROCESSES : (int)count;
}

static void every_small_history_ends_well(void **state)
{
    (void)state;
    size_t states = 0, edges = 0;
    for (size_t i = 0; i < setting_count; i++) {
        const struct world_setting *setting = &settings[i].setting;
        if (!is_chosen(&settings[i]))
            continue;
        const struct exploring exploring = {all ? processes() : 1, .reduces = true};
        struct explored found = explore(setting, exploring);
        print_found(setting->name, &found);
        states += found.states;
        edges += found.edges;
    }
    printf("# %-44s %9zu states %10zu edges\n", "together", states, edges);
}

/* What is left out leads to nothing else: where nothing is left out, the same rests are found. */
static void what_is_left_out_leads_nowhere_else(void **state)
{
    (void)state;
    for (size_t i = 0; i < setting_count; i++) {
        const struct world_setting *setting = &settings[i].setting;
        if (settings[i].extent > ALWAYS || !is_chosen(&settings[i]))
            continue;
        struct explored whole = explore(setting, (struct exploring){1, .reduces = false});
        struct explored reduced = explore(setting, (struct exploring){1, .reduces = true});
        printf("# %-44s %8zu of %zu states, %zu ends\n", setting->name, reduced.states,
               whole.states, reduced.rests);
        assert_int_equal(whole.rests, reduced.rests);
        assert_int_equal(whole.rests_sum, reduced.rests_sum);
    }
}

/* What comes next while no watch shows a pod: the second pod is not made at first, and each edit
 * comes when nothing else is left. Returns false at the end. */
static bool choose_without_pods(int *sent_to_last, int *edits, struct choice *ret_choice)
{
    *ret_choice = (struct choice){CHOICE_ANSWER, 0, 0};
    if (world->sent_count && server_awaits("j-worker-1") && ++*sent_to_last == 2)
        ret_choice->kind = CHOICE_BREAK; /* its service came before */
    if (world->sent_count)
        return true;
    for (size_t i = 0; i < world->event_count; i++) {
        *ret_choice = (struct choice){CHOICE_SHOW, (int)i, 0};
        if (world->events[i].kind != CACHE_PODS)
            return true;
    }
    *ret_choice = (struct choice){CHOICE_PASS, 0, 0};
    if (world_wants_pass())
        return true;
    bool waits = *edits && operator_waits();
    *ret_choice = (struct choice){waits ? CHOICE_DELAY : CHOICE_EDIT, waits ? 0 : (*edits)++, 0};
    return *edits <= 2;
}

/* A group is suspended and resumed before any watch shows the one pod that was made. No row has it:
 * watches of the rows show pods in any order. */
static void a_group_resumes_beside_no_unseen_pod(void **state)
{
    (void)state;
    static const struct world_setting setting = {.name = "unseen pods",
                                                 .workers = 2,
                                                 .restart_policy = "ExitCode",
                                                 .run_policy = SETTING_RUN_POLICY SETTING_GROUP,
                                                 .edits = {EDIT_SUSPEND, EDIT_RESUME},
                                                 .edit_count = 2};
    int sent_to_last = 0, edits = 0;
    struct choice choice;
    world_open(&setting);
    world->s.is_told = true;
    for (int i = 0; i < 60 && choose_without_pods(&sent_to_last, &edits, &choice); i++)
        world_perform(choice);
    assert_int_equal(world->s.truth->status.history.attempt, 1);
    while (world_calm_choice(&choice))
        world_perform(choice);
    world_check_rest();
    assert_int_equal(world->s.truth->pod_count, 2);
    world_close();
}

static bool a_row_is_named(const char *name)
{
    for (size_t i = 0; i < setting_count; i++)
        if (strstr(settings[i].setting.name, name))
            return true;
    return false;
}

/* Returns whether they say what is to be tried; else they are told. */
static bool take_arguments(int argc, char **argv)
{
    all = argc > 1 && strcmp(argv[1], "all") == 0;
    only = argc > 2 ? argv[2] : NULL;
    if (argc > 3 || (argc > 1 && !all)) {
        fprintf(stderr,
                "usage: %s [all [NAME]]\n"
                "Without arguments the rows of make check; all: those of make prove; NAME: the row "
                "of this name, else those with this text in their names.\n",
                argv[0]);
        return false;
    }
    if (!only || a_row_is_named(only))
        return true;
    fprintf(stderr, "no row has \"%s\" in its name. There are:\n", only);
    for (size_t i = 0; i < setting_count; i++)
        fprintf(stderr, "  %s\n", settings[i].setting.name);
    return false;
}

int main(int argc, char **argv)
{
    if (!take_arguments(argc, argv))
        return 2;
    log_set_level(LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_resumes_beside_no_unseen_pod),
        cmocka_unit_test(every_small_history_ends_well),
        cmocka_unit_test(what_is_left_out_leads_nowhere_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
