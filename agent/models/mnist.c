#include "agent/models/mnist.h"
#include "agent/models/families.h"
#include "agent/nn/nn.h"

const struct mnist_shape mnist_default_shape = {
    .height = 28,
    .width = 28,
    .channels1 = 32,
    .channels2 = 64,
    .hidden = 128,
    .classes = 10,
    .dropout1 = 0.25f,
    .dropout2 = 0.5f,
};

struct mnist {
    struct model model; /* first: forward() gets a pointer to it */
    struct module *conv1, *conv2, *dropout1, *dropout2, *fc1, *fc2;
};

static void forward(struct model *model, struct tape *tape, const struct batch *batch,
                    float loss_scale, double *sums)
{
    struct mnist *net = (struct mnist *)model;
    const int64_t *in = model->input_shape;
    struct tensor *x =
        tape_input(tape, batch->input, 4, (int64_t[]){batch->rows, in[0], in[1], in[2]});

    tape_enter(tape, model->root);
    x = nn_conv2d(tape, net->conv1, x, true);
    x = nn_conv2d(tape, net->conv2, x, true);
    x = nn_max_pool2d(tape, x);
    x = nn_dropout(tape, net->dropout1, x, 0);
    x = nn_flatten(tape, x);
    x = nn_linear(tape, net->fc1, x, true);
    x = nn_dropout(tape, net->dropout2, x, 1);
    x = nn_linear(tape, net->fc2, x, false);
    /* The example's log_softmax and nll_loss in one. */
    nn_cross_entropy(tape, x, batch->target, loss_scale, sums);
    tape_leave(tape, model->root);
}

const struct model_family family_mnist_cnn = {
    .name = "mnist_cnn",
    .heads = {{MODEL_IMAGES, {NULL}}},
    .head_count = 1,
};

struct model *model_mnist_new(struct arena *arena, const struct mnist_shape *shape)
{
    enum { KERNEL = 3, POOL = 2 };
    /* Without padding each convolution takes KERNEL - 1 rows: 28 -> 26 -> 24, and 12 are left of
     * them. */
    int64_t pooled_height = (shape->height - 2 * (KERNEL - 1)) / POOL;
    int64_t pooled_width = (shape->width - 2 * (KERNEL - 1)) / POOL;
    struct mnist *net = arena_new(arena, struct mnist);
    struct module *root = module_new(arena, "", "Net", NULL);
    int64_t after_conv1 =
        (shape->height - KERNEL + 1) * (shape->width - KERNEL + 1) * shape->channels1;
    int64_t after_conv2 =
        (shape->height - 2 * (KERNEL - 1)) * (shape->width - 2 * (KERNEL - 1)) * shape->channels2;
    uint64_t index = 0;

    net->conv1 = nn_conv2d_new(arena, root, "conv1", &index, 1, shape->channels1, KERNEL);
    net->conv2 =
        nn_conv2d_new(arena, root, "conv2", &index, shape->channels1, shape->channels2, KERNEL);
    net->dropout1 = nn_dropout_new(arena, root, "dropout1", shape->dropout1);
    net->dropout2 = nn_dropout_new(arena, root, "dropout2", shape->dropout2);
    net->fc1 = nn_linear_new(arena, root, "fc1", &index,
                             shape->channels2 * pooled_height * pooled_width, shape->hidden);
    net->fc2 = nn_linear_new(arena, root, "fc2", &index, shape->hidden, shape->classes);

    net->model = (struct model){
        .type = family_mnist_cnn.name,
        .task = MODEL_IMAGES,
        .root = root,
        .input_shape = {shape->height, shape->width, 1},
        .sample_count = after_conv1 + after_conv2,
        .sample_flops =
            2 * (double)(after_conv1 * KERNEL * KERNEL +
                         after_conv2 * KERNEL * KERNEL * shape->channels1 +
                         shape->channels2 * pooled_height * pooled_width * shape->hidden +
                         shape->hidden * shape->classes),
        .pass_kernels = 39, /* as a trace has them: 14 forward, 25 backward */
        .classes = shape->classes,
        .forward = forward,
    };
    return &net->model;
}
