#include "tests/emulation/cudnn_descriptor.h"

#include <set>

namespace emulation
{

/* ---- the protocol ---- */

struct rule {
    int kind, attribute, type;
    int64_t least, most; /* elements */
    bool needed;
};

#define SOME(kind, attribute, type, least, most)                                                   \
    {                                                                                              \
        CUDNN_BACKEND_##kind##_DESCRIPTOR, CUDNN_ATTR_##attribute, CUDNN_TYPE_##type, least, most, \
            true                                                                                   \
    }
#define ONE(kind, attribute, type) SOME(kind, attribute, type, 1, 1)
#define OPTIONAL(kind, attribute, type)                                                            \
    {                                                                                              \
        CUDNN_BACKEND_##kind##_DESCRIPTOR, CUDNN_ATTR_##attribute, CUDNN_TYPE_##type, 1, 1, false  \
    }

/* What attributes the kinds have. */
static const rule rules[] = {
    ONE(TENSOR, TENSOR_DATA_TYPE, DATA_TYPE),
    SOME(TENSOR, TENSOR_DIMENSIONS, INT64, 4, 4),
    SOME(TENSOR, TENSOR_STRIDES, INT64, 4, 4),
    ONE(TENSOR, TENSOR_UNIQUE_ID, INT64),
    ONE(TENSOR, TENSOR_BYTE_ALIGNMENT, INT64),
    OPTIONAL(TENSOR, TENSOR_IS_VIRTUAL, BOOLEAN),
    OPTIONAL(TENSOR, TENSOR_IS_BY_VALUE, BOOLEAN),
    ONE(MATMUL, MATMUL_COMP_TYPE, DATA_TYPE),
    ONE(OPERATION_MATMUL, OPERATION_MATMUL_ADESC, BACKEND_DESCRIPTOR),
    ONE(OPERATION_MATMUL, OPERATION_MATMUL_BDESC, BACKEND_DESCRIPTOR),
    ONE(OPERATION_MATMUL, OPERATION_MATMUL_CDESC, BACKEND_DESCRIPTOR),
    ONE(OPERATION_MATMUL, OPERATION_MATMUL_DESC, BACKEND_DESCRIPTOR),
    ONE(POINTWISE, POINTWISE_MODE, POINTWISE_MODE),
    ONE(POINTWISE, POINTWISE_MATH_PREC, DATA_TYPE),
    OPTIONAL(POINTWISE, POINTWISE_AXIS, INT64),
    ONE(OPERATION_POINTWISE, OPERATION_POINTWISE_PW_DESCRIPTOR, BACKEND_DESCRIPTOR),
    ONE(OPERATION_POINTWISE, OPERATION_POINTWISE_XDESC, BACKEND_DESCRIPTOR),
    OPTIONAL(OPERATION_POINTWISE, OPERATION_POINTWISE_BDESC, BACKEND_DESCRIPTOR),
    OPTIONAL(OPERATION_POINTWISE, OPERATION_POINTWISE_TDESC, BACKEND_DESCRIPTOR),
    ONE(OPERATION_POINTWISE, OPERATION_POINTWISE_YDESC, BACKEND_DESCRIPTOR),
    ONE(REDUCTION, REDUCTION_OPERATOR, REDUCTION_OPERATOR_TYPE),
    ONE(REDUCTION, REDUCTION_COMP_TYPE, DATA_TYPE),
    ONE(OPERATION_REDUCTION, OPERATION_REDUCTION_XDESC, BACKEND_DESCRIPTOR),
    ONE(OPERATION_REDUCTION, OPERATION_REDUCTION_YDESC, BACKEND_DESCRIPTOR),
    ONE(OPERATION_REDUCTION, OPERATION_REDUCTION_DESC, BACKEND_DESCRIPTOR),
    ONE(OPERATION_RESHAPE, OPERATION_RESHAPE_XDESC, BACKEND_DESCRIPTOR),
    ONE(OPERATION_RESHAPE, OPERATION_RESHAPE_YDESC, BACKEND_DESCRIPTOR),
    SOME(OPERATIONGRAPH, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, 1, 100),
    ONE(DEVICEPROP, DEVICEPROP_DEVICE_ID, INT32),
    ONE(ENGINEHEUR, ENGINEHEUR_MODE, HEUR_MODE),
    ONE(ENGINEHEUR, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR),
    ONE(ENGINEHEUR, ENGINEHEUR_DEVICEPROP, BACKEND_DESCRIPTOR),
    ONE(EXECUTION_PLAN, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR),
    ONE(EXECUTION_PLAN, EXECUTION_PLAN_DEVICEPROP, BACKEND_DESCRIPTOR),
    SOME(VARIANT_PACK, VARIANT_PACK_UNIQUE_IDS, INT64, 1, 100),
    SOME(VARIANT_PACK, VARIANT_PACK_DATA_POINTERS, VOID_PTR, 1, 100),
    ONE(VARIANT_PACK, VARIANT_PACK_WORKSPACE, VOID_PTR),
};

static size_t element_bytes(int type)
{
    switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
        return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return 8;
    default:
        return 4;
    }
}

static std::set<const void *> alive;

descriptor *descriptor_make(int kind)
{
    auto *it = new descriptor;
    it->kind = kind;
    alive.insert(it);
    return it;
}

void descriptor_destroy(void *pointer)
{
    if (!alive.erase(pointer))
        misused("a descriptor is destroyed twice");
    delete (descriptor *)pointer;
}

descriptor *descriptor_open(void *pointer)
{
    if (!alive.count(pointer) || ((descriptor *)pointer)->is_final)
        misused("a descriptor is changed that is final, or not there");
    return (descriptor *)pointer;
}

descriptor *descriptor_final(const void *pointer, int kind)
{
    descriptor *it = (descriptor *)pointer;
    if (!alive.count(pointer) || !it->is_final || (kind >= 0 && it->kind != kind))
        misused("a descriptor is not final, or not of kind " + std::to_string(kind));
    return it;
}

descriptor *descriptor_of(const descriptor *it, int attribute, int kind)
{
    return descriptor_final(it->one<void *>(attribute, nullptr), kind);
}

void descriptor_set(descriptor *it, int attribute, int type, int64_t count, const void *elements)
{
    for (const rule &each : rules)
        if (each.kind == it->kind && each.attribute == attribute) {
            if (each.type != type || count < each.least || count > each.most || !elements)
                misused("attribute " + std::to_string(attribute) + ": another type or count");
            const auto *bytes = (const unsigned char *)elements;
            it->attributes[attribute].assign(bytes, bytes + (size_t)count * element_bytes(type));
            return;
        }
    misused("descriptors of kind " + std::to_string(it->kind) + " have no attribute " +
            std::to_string(attribute));
}

void descriptor_check(const descriptor *it)
{
    for (const rule &each : rules)
        if (each.kind == it->kind && each.needed && !it->attributes.count(each.attribute))
            misused("attribute " + std::to_string(each.attribute) + " is not set");
}

/* ---- what a descriptor says ---- */

static tensor tensor_of(const descriptor *operation, int attribute)
{
    const descriptor *it = descriptor_of(operation, attribute, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    tensor x = {it->one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, 0),
                it->one<int>(CUDNN_ATTR_TENSOR_DATA_TYPE, 0),
                {},
                {},
                it->one<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 0),
                it->one<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL, false),
                it->one<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE, false)};
    for (size_t i = 0; i < 4; i++) {
        x.sizes[i] = it->all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS)[i];
        x.strides[i] = it->all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES)[i];
        if (x.sizes[i] < 1 || x.strides[i] < 1)
            misused("a size or stride is not positive");
    }
    if (x.alignment < 1 || (x.alignment & (x.alignment - 1)) || (x.is_virtual && x.is_by_value))
        misused("a tensor's alignment is no power of two, or it is a number in no memory");
    return x;
}

operation descriptor_operation(const descriptor *it)
{
    operation op = {kind::MATMUL, 0, -1, {}, {}};
    const auto operand = [&](char which, int attribute) {
        if (it->attributes.count(attribute))
            op.operands[which] = tensor_of(it, attribute);
    };
    if (it->kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
        descriptor_of(it, CUDNN_ATTR_OPERATION_MATMUL_DESC, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
        operand('x', CUDNN_ATTR_OPERATION_MATMUL_ADESC);
        operand('b', CUDNN_ATTR_OPERATION_MATMUL_BDESC);
        op.y = tensor_of(it, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    } else if (it->kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) {
        const descriptor *how = descriptor_of(it, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                                              CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
        op.what = kind::POINTWISE;
        op.mode = how->one<int>(CUDNN_ATTR_POINTWISE_MODE, 0);
        op.axis = how->one<int64_t>(CUDNN_ATTR_POINTWISE_AXIS, -1);
        operand('x', CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
        operand('b', CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
        operand('t', CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
        op.y = tensor_of(it, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    } else if (it->kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) {
        const descriptor *how = descriptor_of(it, CUDNN_ATTR_OPERATION_REDUCTION_DESC,
                                              CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
        op.what = kind::REDUCTION;
        op.mode = how->one<int>(CUDNN_ATTR_REDUCTION_OPERATOR, 0);
        operand('x', CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
        op.y = tensor_of(it, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    } else {
        op.what = kind::RESHAPE;
        operand('x', CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
        op.y = tensor_of(it, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
    }
    return op;
}

bool descriptor_is_operation(const descriptor *it)
{
    return it->kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR ||
           it->kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR ||
           it->kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR ||
           it->kind == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR;
}

} // namespace emulation
