/* The CPU backend's table of ops. */
#include "kernels/cpu/cpu.h"

const struct ops cpu_ops = {
    .fill = cpu_fill,
    .scale = cpu_scale,
    .add = cpu_add,
    .uniform = cpu_uniform,
    .normalize = cpu_normalize,
    .conv2d_forward = cpu_conv2d_forward,
    .conv2d_backward_data = cpu_conv2d_backward_data,
    .conv2d_backward_weights = cpu_conv2d_backward_weights,
    .relu_backward = cpu_relu_backward,
    .max_pool2d_forward = cpu_max_pool2d_forward,
    .max_pool2d_backward = cpu_max_pool2d_backward,
    .channels_first = cpu_channels_first,
    .channels_last = cpu_channels_last,
    .linear_forward = cpu_linear_forward,
    .linear_backward_data = cpu_linear_backward_data,
    .linear_backward_weights = cpu_linear_backward_weights,
    .dropout = cpu_dropout,
    .log_softmax = cpu_log_softmax,
    .nll_loss = cpu_nll_loss,
    .nll_log_softmax_backward = cpu_nll_log_softmax_backward,
    .sum_of_squares = cpu_sum_of_squares,
    .adadelta = cpu_adadelta,
    .sgd = cpu_sgd,
    .adam = cpu_adam,
};
