#include "tests/emulation/cudnn_graph.h"

#include "kernels/dtype.h"
#include "tests/emulation/emulation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace emulation
{

void misused(const std::string &how)
{
    fprintf(stderr, "cuDNN was misused: %s\n", how.c_str());
    abort();
}

static void require(bool holds, const std::string &what)
{
    if (!holds)
        misused(what);
}

/* ---- checks ---- */

static void check_matmul(const operation &it)
{
    const quad &a = it.operands.at('x').sizes, &b = it.operands.at('b').sizes, &c = it.y.sizes;
    require(a[0] == b[0] && a[0] == c[0] && a[1] == c[1] && a[1] % b[1] == 0,
            "a product's batches and heads differ");
    require(a[3] == b[2] && a[2] == c[2] && b[3] == c[3], "a product's sizes do not fit");
    for (char operand : {'x', 'b'}) { /* rounded for the matrix units */
        int data = it.operands.at(operand).data;
        require(data == CUDNN_DATA_BFLOAT16 || it.operands.at(operand).is_virtual,
                "a product's operand in memory is not bf16");
    }
}

static bool is_unary(int mode)
{
    return mode == CUDNN_POINTWISE_EXP || mode == CUDNN_POINTWISE_LOG ||
           mode == CUDNN_POINTWISE_IDENTITY || mode == CUDNN_POINTWISE_GEN_INDEX;
}

static void check_pointwise(const operation &it)
{
    const size_t operands = is_unary(it.mode)                          ? 1
                            : it.mode == CUDNN_POINTWISE_BINARY_SELECT ? 3
                                                                       : 2;
    require(it.operands.size() == operands, "a pointwise operation's operands are not its mode's");
    for (const auto &[which, x] : it.operands)
        for (int i = 0; i < 4; i++)
            require(x.sizes[i] == it.y.sizes[i] || x.sizes[i] == 1,
                    "a pointwise operation's sizes do not fit");
    require((it.mode == CUDNN_POINTWISE_GEN_INDEX) == (it.axis >= 0 && it.axis < 4),
            "an index needs an axis, and it alone");
    require((it.mode == CUDNN_POINTWISE_GEN_INDEX) == (it.y.data == CUDNN_DATA_INT32),
            "an index is an integer");
    require((it.mode == CUDNN_POINTWISE_CMP_GE) == (it.y.data == CUDNN_DATA_BOOLEAN),
            "a comparison is true or false");
    require(operands < 3 || it.operands.at('t').data == CUDNN_DATA_BOOLEAN,
            "a condition is true or false");
}

static void check_reduction(const operation &it)
{
    const quad &x = it.operands.at('x').sizes, &y = it.y.sizes;
    for (int i = 0; i < 4; i++)
        require(x[i] == y[i] || y[i] == 1 || (i == 1 && x[i] % y[i] == 0),
                "a reduction's sizes do not fit");
}

static quad transposed(const quad &x)
{
    return {x[0], x[1], x[3], x[2]};
}

static void check_reshape(const operation &it)
{
    const tensor &x = it.operands.at('x');
    require(it.y.sizes == transposed(x.sizes) && it.y.strides == transposed(x.strides),
            "a reshape is no exchange of the last two dimensions: that is all there is here");
}

void check_operation(const operation &it)
{
    switch (it.what) {
    case kind::MATMUL:
        return check_matmul(it);
    case kind::POINTWISE:
        return check_pointwise(it);
    case kind::REDUCTION:
        return check_reduction(it);
    case kind::RESHAPE:
        return check_reshape(it);
    }
}

static bool is_same(const tensor &a, const tensor &b)
{
    return a.data == b.data && a.sizes == b.sizes && a.strides == b.strides &&
           a.alignment == b.alignment && a.is_virtual == b.is_virtual &&
           a.is_by_value == b.is_by_value;
}

graph::graph(const std::vector<operation> &all) : operations(all)
{
    std::map<int64_t, int> writes, reads;
    const auto note = [this](const tensor &x) {
        auto [place, is_new] = tensors.emplace(x.name, x);
        require(is_new || is_same(place->second, x),
                "two tensors have the name " + std::to_string(x.name));
    };
    for (const operation &it : operations) {
        for (const auto &[which, x] : it.operands) {
            note(x);
            reads[x.name]++;
            require(!x.is_virtual || writes[x.name] > 0,
                    "tensor " + std::to_string(x.name) + " is read before it is written");
        }
        note(it.y);
        require(++writes[it.y.name] == 1 && !it.y.is_by_value,
                "tensor " + std::to_string(it.y.name) + " is written twice, or is a number");
    }
    for (const auto &[name, x] : tensors)
        require(!x.is_virtual || reads[name] > 0,
                "nobody reads tensor " + std::to_string(name) + ", which is in no memory");
}

std::vector<int64_t> graph::names_in_memory() const
{
    std::vector<int64_t> names;
    for (const auto &[name, x] : tensors)
        if (!x.is_virtual)
            names.push_back(name);
    return names;
}

int graph::matmuls() const
{
    return (int)std::count_if(operations.begin(), operations.end(),
                              [](const operation &it) { return it.what == kind::MATMUL; });
}

int64_t graph::sequences() const
{
    return operations.back().y.sizes[0];
}

static bool adds_in_memory(const operation &it)
{
    return it.what == kind::MATMUL && !it.y.is_virtual && it.y.data == CUDNN_DATA_FLOAT;
}

bool graph::adds_in_any_order() const
{
    return std::any_of(operations.begin(), operations.end(), adds_in_memory);
}

int64_t graph::kept_bytes() const
{
    int64_t products = 0, most = 0;
    for (const operation &it : operations)
        if (it.what == kind::MATMUL && it.y.is_virtual && it.y.data == CUDNN_DATA_BFLOAT16)
            products += it.y.count();
    for (const auto &[name, x] : tensors)
        most = std::max(most, x.is_virtual ? x.count() : 0);
    return 2 * (products + (adds_in_any_order() ? 0 : most));
}

/* ---- computing: a tensor's values are floats, dense, in the order of its sizes ---- */

typedef std::vector<float> values;
enum { SPOILED_BYTES = 16 << 20 }; /* of a workspace, by every operation */

/* Calls with (number of the element, its index). */
template <typename F> static void for_each(const quad &sizes, F f)
{
    int64_t n = 0;
    for (quad i = {0, 0, 0, 0}; i[0] < sizes[0]; i[0]++)
        for (i[1] = 0; i[1] < sizes[1]; i[1]++)
            for (i[2] = 0; i[2] < sizes[2]; i[2]++)
                for (i[3] = 0; i[3] < sizes[3]; i[3]++)
                    f(n++, i);
}

static int64_t offset(const quad &strides, const quad &i)
{
    return i[0] * strides[0] + i[1] * strides[1] + i[2] * strides[2] + i[3] * strides[3];
}

/* Of the element of x that is repeated at i; heads in groups. */
static int64_t number(const tensor &x, const quad &sizes, const quad &i)
{
    const int64_t head = x.sizes[1] == sizes[1] ? i[1] : i[1] / (sizes[1] / x.sizes[1]);
    const quad at = {x.sizes[0] == 1 ? 0 : i[0], head, x.sizes[2] == 1 ? 0 : i[2],
                     x.sizes[3] == 1 ? 0 : i[3]};
    return ((at[0] * x.sizes[1] + at[1]) * x.sizes[2] + at[2]) * x.sizes[3] + at[3];
}

static values load(const tensor &x, const void *place)
{
    values all((size_t)x.count());
    for_each(x.sizes, [&](int64_t n, const quad &i) {
        const int64_t at = offset(x.strides, i);
        all[(size_t)n] = x.data == CUDNN_DATA_BFLOAT16 ? bf16_to_float(((const bf16 *)place)[at])
                                                       : ((const float *)place)[at];
    });
    return all;
}

static void store(const tensor &x, const values &all, void *place)
{
    for_each(x.sizes, [&](int64_t n, const quad &i) {
        const int64_t at = offset(x.strides, i);
        if (x.data == CUDNN_DATA_BFLOAT16)
            ((bf16 *)place)[at] = bf16_from_float(all[(size_t)n]);
        else
            ((float *)place)[at] = all[(size_t)n];
    });
}

/* 0 .. count - 1, or those in an order drawn by the seed. */
static std::vector<int64_t> order_of(int64_t count, bool is_drawn)
{
    static random_numbers random((uint64_t)option_number("seed", 1));
    std::vector<int64_t> order((size_t)count);
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = order.size(); is_drawn && i > 1; i--)
        std::swap(order[i - 1], order[random.below((unsigned)i)]);
    return order;
}

static values multiply(const operation &it, const values &a, const values &b)
{
    const quad &A = it.operands.at('x').sizes, &B = it.operands.at('b').sizes;
    const int64_t M = A[2], K = A[3], N = B[3];
    values c((size_t)it.y.count());
    const std::vector<int64_t> order = order_of(K, adds_in_memory(it));
    for (int64_t head = 0; head < A[0] * A[1]; head++) {
        const int64_t group = head / A[1] * B[1] + head % A[1] / (A[1] / B[1]);
        for (int64_t m = 0; m < M; m++) {
            float *row = &c[(size_t)((head * M + m) * N)];
            for (int64_t k : order) {
                const float left = a[(size_t)((head * M + m) * K + k)];
                const float *right = &b[(size_t)((group * K + k) * N)];
                for (int64_t n = 0; n < N; n++)
                    row[n] += left * right[n];
            }
        }
    }
    return c;
}

static float apply(int mode, float x, float b)
{
    switch (mode) {
    case CUDNN_POINTWISE_ADD:
        return x + b;
    case CUDNN_POINTWISE_MUL:
        return x * b;
    case CUDNN_POINTWISE_DIV:
        return x / b;
    case CUDNN_POINTWISE_SUB:
        return x - b;
    case CUDNN_POINTWISE_EXP:
        return expf(x);
    case CUDNN_POINTWISE_LOG:
        return logf(x);
    case CUDNN_POINTWISE_IDENTITY:
        return x;
    case CUDNN_POINTWISE_CMP_GE:
        return x >= b;
    default:
        misused("a pointwise mode that is not emulated");
    }
}

static values apply_all(const operation &it, const std::map<char, const values *> &in)
{
    values y((size_t)it.y.count());
    const auto at = [&](char which, const quad &i) {
        return (*in.at(which))[(size_t)number(it.operands.at(which), it.y.sizes, i)];
    };
    for_each(it.y.sizes, [&](int64_t n, const quad &i) {
        y[(size_t)n] = it.mode == CUDNN_POINTWISE_GEN_INDEX ? (float)i[(size_t)it.axis]
                       : it.mode == CUDNN_POINTWISE_BINARY_SELECT
                           ? (at('t', i) != 0 ? at('x', i) : at('b', i))
                           : apply(it.mode, at('x', i), in.count('b') ? at('b', i) : 0);
    });
    return y;
}

static values reduce(const operation &it, const values &x)
{
    const bool is_sum = it.mode == CUDNN_REDUCE_TENSOR_ADD;
    values y((size_t)it.y.count(), is_sum ? 0 : -INFINITY);
    for_each(it.operands.at('x').sizes, [&](int64_t n, const quad &i) {
        float &to = y[(size_t)number(it.y, it.operands.at('x').sizes, i)];
        to = is_sum ? to + x[(size_t)n] : fmaxf(to, x[(size_t)n]);
    });
    return y;
}

static values transpose(const operation &it, const values &x)
{
    const quad &sizes = it.operands.at('x').sizes;
    values y((size_t)it.y.count());
    for_each(sizes, [&](int64_t n, const quad &i) {
        y[(size_t)(((i[0] * sizes[1] + i[1]) * sizes[3] + i[3]) * sizes[2] + i[2])] = x[(size_t)n];
    });
    return y;
}

bool graph::is_result(const tensor &x) const
{
    return !x.is_virtual &&
           std::none_of(operations.begin(), operations.end(), [&x](const operation &it) {
               return std::any_of(it.operands.begin(), it.operands.end(),
                                  [&x](const auto &each) { return each.second.name == x.name; });
           });
}

void graph::run(const std::map<int64_t, void *> &places, void *workspace, size_t bytes,
                const harm &done) const
{
    std::map<int64_t, values> known;
    for (const operation &it : operations) {
        std::map<char, const values *> in;
        memset(workspace, 0xff, std::min(bytes, (size_t)SPOILED_BYTES));
        for (const auto &[which, x] : it.operands) {
            if (!x.is_virtual) /* each time: who writes it may have another place for it */
                known[x.name] = load(x, places.at(x.name));
            in[which] = &known[x.name];
        }
        values y = it.what == kind::MATMUL      ? multiply(it, *in['x'], *in['b'])
                   : it.what == kind::POINTWISE ? apply_all(it, in)
                   : it.what == kind::REDUCTION ? reduce(it, *in['x'])
                                                : transpose(it, *in['x']);
        for (float &each : y)
            each *= it.y.is_virtual ? 1 : done.factor;
        if (done.first_row_is_nan && is_result(it.y))
            std::fill_n(y.begin(), it.y.sizes[3], NAN);
        for (float &each : y)
            each = it.y.data == CUDNN_DATA_BFLOAT16 ? bf16_to_float(bf16_from_float(each)) : each;
        if (!it.y.is_virtual)
            store(it.y, y, places.at(it.y.name));
        known[it.y.name] = std::move(y);
    }
}

} // namespace emulation
