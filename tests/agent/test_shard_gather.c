/* The order in which a rank issues its collectives and its computing: read off a communicator that
 * only takes notes, over a model whose modules are units of different size. */
#include "agent/shard/shard.h"
#include "agent/shard/wrap.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

/* What is done, in the order in which it is queued: gX: gather unit X, RX: reduce it, SX:
 * exchange what slots have of it, fX and bX: its forward and backward. */
struct notes {
    struct str text;
    struct stream *gathers, *reduces; /* where they were put last */
};

/* Two ranks, of which this one is the first. */
struct note_comm {
    struct comm comm;
    struct notes *notes;
    bool is_split; /* from another */
};

/* root { a, b { c } }, each a unit with one parameter. */
struct fixture {
    struct arena *arena;
    struct device *device;
    struct stream *compute;
    struct module *root, *a, *b, *c;
    struct note_comm world;
    struct shard *shard;
    struct tape *tape;
};

static char unit_name(int64_t slice_count)
{
    static const char names[] = "?rabc";
    return names[slice_count / LAYOUT_ALIGN];
}

static void note_gather(struct comm *c, struct stream *s, enum dtype t, void *recv,
                        const void *send, int64_t count)
{
    (void)t, (void)recv, (void)send;
    struct note_comm *note = (struct note_comm *)c;
    assert_false(note->is_split);
    note->notes->gathers = s;
    str_printf(&note->notes->text, " g%c", unit_name(count));
}

static void note_reduce(struct comm *c, struct stream *s, enum dtype t, void *recv, void *send,
                        int64_t count, enum comm_reduce how)
{
    (void)t, (void)recv, (void)send;
    struct note_comm *note = (struct note_comm *)c;
    assert_int_equal(how, COMM_MEAN);
    assert_int_equal(note->is_split, note->comm.is_concurrent);
    note->notes->reduces = s;
    str_printf(&note->notes->text, " R%c", unit_name(count));
}

/* count: of the half of a unit. */
static void note_exchange(struct comm *c, struct stream *s, enum dtype t, void *recv,
                          const void *send, int64_t count, int64_t stride, const int *places)
{
    (void)s, (void)t, (void)recv, (void)send, (void)stride, (void)places;
    struct note_comm *note = (struct note_comm *)c;
    str_printf(&note->notes->text, " S%c", unit_name(count));
}

static int note_split(struct comm *c, int color, struct comm **ret_comm, struct error *err)
{
    (void)err;
    struct note_comm *part = xmalloc(sizeof *part);
    assert_int_equal(color, 0); /* all ranks */
    *part = *(struct note_comm *)c;
    part->is_split = true;
    *ret_comm = &part->comm;
    return 0;
}

static void note_close(struct comm *c)
{
    free(c);
}

static const struct comm_functions note_functions = {.all_gather = note_gather,
                                                     .reduce_scatter = note_reduce,
                                                     .all_to_all = note_exchange,
                                                     .split = note_split,
                                                     .close = note_close};

static struct module *add_module(struct fixture *f, struct module *parent, const char *name,
                                 uint64_t index)
{
    struct module *m = module_new(f->arena, name, "Unit", NULL);
    if (parent)
        module_add(f->arena, parent, m);
    module_add_param(f->arena, m, "w", index, 1,
                     (int64_t[]){2 * LAYOUT_ALIGN * ((int64_t)index + 1)},
                     (struct param_init){INIT_UNIFORM, 0, 0});
    return m;
}

static void open_fixture(struct fixture *f, struct notes *notes, const struct shard_config *config,
                         bool is_concurrent)
{
    struct error err;
    const char *classes[] = {"Unit"};
    *notes = (struct notes){0};
    f->world = (struct note_comm){
        .comm = {.fn = &note_functions, .rank = 0, .size = 2, .is_concurrent = is_concurrent},
        .notes = notes};
    str_init(&notes->text, 4096);
    f->arena = arena_open();
    f->root = add_module(f, NULL, "", 0);
    f->a = add_module(f, f->root, "a", 1);
    f->b = add_module(f, f->root, "b", 2);
    f->c = add_module(f, f->b, "c", 3);
    assert_ok(wrap_by_class(f->root, classes, 1, &err), &err);
    assert_ok(device_open("cpu", 1, &f->device, &err), &err);
    assert_ok(stream_open(f->device, "compute", &f->compute, &err), &err);
    assert_ok(shard_open(config, f->compute, f->device, &f->world.comm, f->root, &f->shard, &err),
              &err);
    shard_init_values(f->shard, 1);
    struct tape_hooks hooks = shard_hooks(f->shard);
    assert_ok(tape_open(f->compute, DTYPE_F32, &hooks, &f->tape, &err), &err);
}

static void close_fixture(struct fixture *f, struct notes *notes)
{
    struct memory_use use;
    tape_close(f->tape);
    shard_close(f->shard);
    device_memory_use(f->device, &use);
    assert_int_equal(use.current_total_bytes, 0);
    stream_close(f->compute);
    device_close(f->device);
    arena_close(f->arena);
    str_free(&notes->text);
}

struct use_args {
    struct notes *notes;
    char name;
};

static void use_backward(struct tape *tape, struct tape_op *op)
{
    (void)tape;
    struct use_args args;
    memcpy(&args, op->args, sizeof args);
    assert_non_null(op->module->params[0]->value);
    assert_non_null(op->module->params[0]->gradient);
    str_printf(&args.notes->text, " b%c", args.name);
}

/* An op that uses the module's parameter. */
static void use(struct fixture *f, struct notes *notes, struct module *m, char name)
{
    struct use_args args = {notes, name};
    struct tape_op op = {.backward = use_backward, .module = m};
    memcpy(op.args, &args, sizeof args);
    assert_non_null(m->params[0]->value);
    str_printf(&notes->text, " f%c", name);
    tape_record(f->tape, &op);
}

/* The begun micro-batch; unit a may be left out. */
static void run_units(struct fixture *f, struct notes *notes, bool uses_a)
{
    struct error err;
    tape_begin(f->tape, &(struct tape_pass){.training = true});
    tape_enter(f->tape, f->root);
    use(f, notes, f->root, 'r');
    if (uses_a) {
        tape_enter(f->tape, f->a);
        use(f, notes, f->a, 'a');
        tape_leave(f->tape, f->a);
    }
    tape_enter(f->tape, f->b);
    tape_enter(f->tape, f->c);
    use(f, notes, f->c, 'c');
    tape_leave(f->tape, f->c);
    use(f, notes, f->b, 'b');
    tape_leave(f->tape, f->b);
    tape_leave(f->tape, f->root);
    str_add(&notes->text, " |");
    assert_ok(tape_backward(f->tape, &err), &err);
}

static void run_pass(struct fixture *f, struct notes *notes, bool last_micro_batch)
{
    shard_begin(f->shard, last_micro_batch);
    run_units(f, notes, true);
}

/* Also where reduces have a stream of their own: the host's order is what NCCL launches them in.
 * The second step, so that forward_prefetch knows the order. Within b lies c: b is left last and
 * its backward begins first and ends after c's. */
static void collectives_come_in_this_order(void **state)
{
    (void)state;
    static const struct {
        struct shard_config config;
        const char *expected;
    } rows[] = {
        {{.strategy = FULL_SHARD, .backward_prefetch = NO_PREFETCH, .limit_all_gathers = true},
         " gr fr ga fa gb gc fc fb | gb bb gc bc Rc Rb ga ba Ra br Rr"},
        {{.strategy = FULL_SHARD, .backward_prefetch = BACKWARD_PRE, .limit_all_gathers = true},
         " gr fr ga fa gb gc fc fb | gb gc bb ga bc Rc Rb ba Ra br Rr"},
        {{.strategy = FULL_SHARD, .backward_prefetch = BACKWARD_POST, .limit_all_gathers = true},
         " gr fr ga fa gb gc fc fb | gb bb gc bc ga Rc Rb ba Ra br Rr"},
        {{.strategy = FULL_SHARD, .forward_prefetch = true, .limit_all_gathers = true},
         " gr ga fr gb fa gc fc fb | gb bb gc bc Rc Rb ga ba Ra br Rr"},
        {{.strategy = FULL_SHARD, .backward_prefetch = BACKWARD_PRE, .forward_prefetch = true},
         " gr ga gb gc fr fa fc fb | gb gc ga bb bc Rc Rb ba Ra br Rr"},
        {{.strategy = SHARD_GRAD_OP, .backward_prefetch = BACKWARD_PRE, .limit_all_gathers = true},
         " gr fr ga fa gb gc fc fb | bb bc Rc Rb ba Ra br Rr"},
    };
    for (size_t i = 0; i < 2 * array_length(rows); i++) {
        struct fixture f;
        struct notes notes;
        bool is_concurrent = i % 2;
        open_fixture(&f, &notes, &rows[i / 2].config, is_concurrent);
        for (int step = 0; step < 2; step++) {
            str_clear(&notes.text);
            run_pass(&f, &notes, true);
            shard_finish(f.shard);
            shard_values_changed(f.shard);
        }
        assert_string_equal(str_text(&notes.text), rows[i / 2].expected);
        assert_int_equal(notes.gathers != notes.reduces, is_concurrent);
        close_fixture(&f, &notes);
    }
}

/* Two micro-batches; only the second is the last. */
static void micro_batches_reduce_when_they_should(void **state)
{
    (void)state;
    static const struct {
        struct shard_config config;
        const char *expected;
    } rows[] = {
        {{.strategy = FULL_SHARD, .accumulate_sharded = false},
         " gr fr ga fa gb gc fc fb | gb bb gc bc ga ba br"
         " gr fr ga fa gb gc fc fb | gb bb gc bc Rc Rb ga ba Ra br Rr"},
        {{.strategy = FULL_SHARD, .accumulate_sharded = true},
         " gr fr ga fa gb gc fc fb | gb bb gc bc Rc Rb ga ba Ra br Rr"
         " gr fr ga fa gb gc fc fb | gb bb gc bc Rc Rb ga ba Ra br Rr"},
        {{.strategy = SHARD_GRAD_OP, .accumulate_sharded = false},
         " gr fr ga fa gb gc fc fb | bb bc ba br"
         " fr fa fc fb | bb bc Rc Rb ba Ra br Rr"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct fixture f;
        struct notes notes;
        open_fixture(&f, &notes, &rows[i].config, false);
        run_pass(&f, &notes, false);
        run_pass(&f, &notes, true);
        shard_finish(f.shard);
        assert_string_equal(str_text(&notes.text), rows[i].expected);
        close_fixture(&f, &notes);
    }
}

/* Three slots on two ranks: the second round has fewer. A unit that the first one's last
 * micro-batch does not use is reduced before the second begins. */
static void slots_are_reduced_in_their_round(void **state)
{
    (void)state;
    enum { MICRO_BATCHES = 2 };
    static const struct {
        int left_out; /* the turn that does not use unit a; -1: none */
        const char *expected;
    } rows[] = {
        {-1, " gr fr ga fa gb gc fc fb | bb bc ba br fr fa fc fb | bb bc Sc Sb ba Sa br Sr"
             " gr fr ga fa gb gc fc fb | bb bc ba br fr fa fc fb | bb bc Sc Sb ba Sa br Sr"},
        {1, " gr fr ga fa gb gc fc fb | bb bc ba br fr fc fb | bb bc Sc Sb br Sr Sa"
            " gr fr fa gb gc fc fb | bb bc ba br fr fa fc fb | bb bc Sc Sb ba Sa br Sr"},
        {3, " gr fr ga fa gb gc fc fb | bb bc ba br fr fa fc fb | bb bc Sc Sb ba Sa br Sr"
            " gr fr ga fa gb gc fc fb | bb bc ba br fr fc fb | bb bc Sc Sb br Sr Sa"},
    };
    const struct slots slots = {3, 2};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct fixture f;
        struct notes notes;
        open_fixture(&f, &notes, &(struct shard_config){.strategy = SHARD_GRAD_OP, .slots = 3},
                     false);
        for (int n = 0; n < slots_rounds(slots) * MICRO_BATCHES; n++) {
            struct slots_turn turn = slots_turn(slots, MICRO_BATCHES, false, n);
            shard_begin_turn(f.shard, &turn);
            run_units(&f, &notes, n != rows[i].left_out);
        }
        shard_finish(f.shard);
        assert_string_equal(str_text(&notes.text), rows[i].expected);
        close_fixture(&f, &notes);
    }
}

static void note_wait(void *ctx, enum shard_wait what)
{
    struct notes *notes = ctx;
    str_add(&notes->text, what == SHARD_WAIT_NOTHING  ? ")"
                          : what == SHARD_WAIT_UPDATE ? " U("
                                                      : " C(");
}

/* Who looks for what holds a step up is not sent to the network for an update: the first pass after
 * one waits for it, then for the gather that has waited, too; the next one for its gather alone. */
static void updates_and_collectives_are_waited_for_apart(void **state)
{
    (void)state;
    static const struct {
        struct shard_config config;
        int passes;
        const char *expected;
    } rows[] = {
        {{.strategy = FULL_SHARD, .update_beside = true},
         2,
         " gr U() C() fr ga U() C() fa gb U() C() gc U() C() fc fb"
         " | gb C() bb gc C() bc Rc Rb C() ga C() ba Ra C() br Rr C()"
         " gr C() fr ga C() fa gb C() gc C() fc fb"
         " | C() gb C() bb gc C() bc Rc Rb C() ga C() ba Ra C() br Rr C()"},
        {{.strategy = FULL_SHARD},
         1,
         " gr C() fr ga C() fa gb C() gc C() fc fb"
         " | gb C() bb gc C() bc Rc Rb C() ga C() ba Ra C() br Rr C()"},
        {{.strategy = NO_SHARD, .update_beside = true},
         1,
         " U() fr U() fa U() U() fc fb | bb bc ba br"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct fixture f;
        struct notes notes;
        struct shard_config config = rows[i].config;
        config.waits = note_wait;
        config.waits_ctx = &notes;
        config.accumulate_sharded = true;
        open_fixture(&f, &notes, &config, false);
        str_clear(&notes.text);
        for (int pass = 0; pass < rows[i].passes; pass++)
            run_pass(&f, &notes, false);
        assert_string_equal(str_text(&notes.text), rows[i].expected);
        close_fixture(&f, &notes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_come_in_this_order),
        cmocka_unit_test(updates_and_collectives_are_waited_for_apart),
        cmocka_unit_test(micro_batches_reduce_when_they_should),
        cmocka_unit_test(slots_are_reduced_in_their_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
