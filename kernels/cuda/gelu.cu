/* Gaussian error linear unit (Hendrycks and Gimpel 2016). */
#include "kernels/cuda/activation.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/ops.h"

template <class F> struct value_of {
    __device__ float at(float x) const
    {
        return F::value(x);
    }
};

template <class F> struct slope_of {
    __device__ float at(float dy, float x) const
    {
        return dy * F::slope(x);
    }
};

void cuda_gelu_forward(struct stream *s, enum dtype t, void *y, const void *x, int64_t count,
                       bool tanh)
{
    if (tanh)
        map(s, t, y, x, count, value_of<gelu_tanh>());
    else
        map(s, t, y, x, count, value_of<gelu_erf>());
}

void cuda_gelu_backward(struct stream *s, enum dtype t, void *dx, const void *dy, const void *x,
                        int64_t count, bool tanh)
{
    if (tanh)
        map(s, t, dx, dy, x, count, slope_of<gelu_tanh>());
    else
        map(s, t, dx, dy, x, count, slope_of<gelu_erf>());
}
