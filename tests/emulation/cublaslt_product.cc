#include "tests/emulation/cublaslt_product.h"

#include "kernels/fp8.h"
#include "tests/emulation/emulation.h"

#include <cmath>

namespace emulation::cublaslt
{

bool is_fp8(cudaDataType type)
{
    return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

static float number_at(const void *data, cudaDataType type, int64_t i)
{
    if (is_fp8(type))
        return fp8_to_float(type == CUDA_R_8F_E4M3 ? FP8_E4M3 : FP8_E5M2,
                            ((const uint8_t *)data)[i]);
    return type == CUDA_R_16BF ? bf16_to_float(((const bf16 *)data)[i]) : ((const float *)data)[i];
}

float matrix::at(int64_t row, int64_t col) const
{
    int64_t i = trans ? col + row * ld : row + col * ld;
    return number_at(data, type, i);
}

std::vector<float> matrix::dense(int64_t count, int64_t length, bool of_cols) const
{
    std::vector<float> floats((size_t)(count * length));
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < length; k++)
            floats[(size_t)(i * length + k)] = of_cols ? at(k, i) : at(i, k);
    return floats;
}

size_t parts_bytes(const recipe &how)
{
    const int64_t split = forms[how.form].split;
    return how.k > split ? (how.k + split - 1) / split * (size_t)how.m * how.n * sizeof(float) : 0;
}

static float dot(const float *x, const float *y, int64_t count)
{
    float sum = 0;
    for (int64_t k = 0; k < count; k++)
        sum += x[k] * y[k];
    return sum;
}

/* The sum's parts, where it is split, are added up in another order each time if none is asked
 * for. */
static float sum_of(const product &p, const float *a, const float *b, int64_t element,
                    unsigned start)
{
    const int64_t split = forms[p.how.form].split, k = p.how.k, parts = (k + split - 1) / split;
    const int64_t stride = (int64_t)p.how.m * p.how.n;
    if (!p.parts)
        return dot(a, b, k);
    for (int64_t part = 0; part < parts; part++)
        p.parts[part * stride + element] =
            dot(a + part * split, b + part * split, part + 1 < parts ? split : k - part * split);
    float sum = 0;
    for (int64_t part = 0; part < parts; part++)
        sum += p.parts[(start + part) % parts * stride + element];
    return sum;
}

static void put(const product &p, const void *to, int64_t i, float value)
{
    if (p.how.type_c == CUDA_R_16BF)
        ((bf16 *)to)[i] = bf16_from_float(value);
    else
        ((float *)to)[i] = value;
}

static bool adds_bias(const recipe &how)
{
    return how.epilogue & CUBLASLT_EPILOGUE_BIAS;
}

static bool sums_terms(const recipe &how)
{
    return how.epilogue == CUBLASLT_EPILOGUE_BGRADA || how.epilogue == CUBLASLT_EPILOGUE_BGRADB;
}

/* The GELU's share of x, tanh's approximation, and its slope. */
static float gelu(float x)
{
    return 0.5f * x * (1 + std::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
}

static float gelu_slope(float x)
{
    const float t = std::tanh(0.79788456f * (x + 0.044715f * x * x * x));
    return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.79788456f * (1 + 3 * 0.044715f * x * x);
}

/* What d gets of a sum. */
static float finish(const product &p, float sum, int64_t row, int64_t col)
{
    if (adds_bias(p.how))
        sum += p.bias.at(row, 0);
    if (p.how.epilogue == CUBLASLT_EPILOGUE_DGELU)
        return sum * gelu_slope(p.aux.at(row, col));
    if (p.how.epilogue != CUBLASLT_EPILOGUE_GELU_AUX_BIAS)
        return sum;
    put(p, p.aux.data, row + col * p.aux.ld, sum);
    return gelu(sum);
}

/* BGRADA: of A's rows; BGRADB: of B's columns. */
static void sum_terms(const product &p, const std::vector<float> &terms, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        float sum = 0;
        for (int64_t k = p.how.k; k-- > 0;)
            sum += terms[(size_t)(i * p.how.k + k)];
        put(p, p.bias.data, i, sum);
    }
}

void multiply(product p)
{
    static unsigned runs;
    emulation::spend(forms[p.how.form].us);
    const unsigned start = p.how.unordered ? runs++ : 0;
    const int64_t m = p.how.m, n = p.how.n, k = p.how.k;
    const float scale = p.alpha * (p.scale_a ? *p.scale_a : 1) * (p.scale_b ? *p.scale_b : 1);
    const std::vector<float> a = p.a.dense(m, k, false), b = p.b.dense(n, k, true);
    for (int64_t i = 0; i < m * n; i++) {
        const int64_t row = i % m, col = i / m;
        float sum = scale * sum_of(p, &a[(size_t)(row * k)], &b[(size_t)(col * k)], i, start);
        if (p.beta != 0)
            sum += p.beta * p.c.at(row, col);
        put(p, p.d, row + col * p.c.ld, finish(p, sum, row, col));
    }
    if (sums_terms(p.how))
        p.how.epilogue == CUBLASLT_EPILOGUE_BGRADA ? sum_terms(p, a, m) : sum_terms(p, b, n);
}

} // namespace emulation::cublaslt
