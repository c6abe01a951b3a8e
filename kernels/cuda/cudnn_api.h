/* The part of cuDNN's backend interface that attention needs, declared anew so that no build needs
 * its headers, and found at run time. Names that begin with CUDNN_ and are in capitals, and their
 * values, are the library's own (cudnn_graph.h, 9.10 to 9.19). Where the library is installed,
 * tests/kernels/test_cudnn_plan.c has it take graphs that are made of them. */
#ifndef SHOAL_KERNELS_CUDA_CUDNN_API_H
#define SHOAL_KERNELS_CUDA_CUDNN_API_H

#include "base/error.h"
#include "base/library.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 9.10.0, as cudnnGetVersion() gives it: the first whose masks may be -infinity. It also knows
 * device properties (9.8), so that a plan can be made without a handle. */
enum { CUDNN_OLDEST = 91000 };
/* 9.16.0: the first whose backward is right where T_k is no multiple of CUDNN_KEYS_BLOCK. For those
 * before it, cudnn-frontend makes a padding mask of its own (scaled_dot_product_flash_attention.h),
 * which our graphs have not. */
enum { CUDNN_BACKWARD_OF_ANY_LENGTH = 91600, CUDNN_KEYS_BLOCK = 128 };

enum cudnn_type { /* of an attribute's elements */
                  CUDNN_TYPE_DATA_TYPE = 1,
                  CUDNN_TYPE_BOOLEAN = 2,
                  CUDNN_TYPE_INT64 = 3,
                  CUDNN_TYPE_VOID_PTR = 6,
                  CUDNN_TYPE_HEUR_MODE = 8,
                  CUDNN_TYPE_NUMERICAL_NOTE = 11,
                  CUDNN_TYPE_POINTWISE_MODE = 14,
                  CUDNN_TYPE_BACKEND_DESCRIPTOR = 15,
                  CUDNN_TYPE_REDUCTION_OPERATOR_TYPE = 18,
                  CUDNN_TYPE_INT32 = 23,
                  CUDNN_TYPE_CHAR = 24,
};

enum cudnn_data {
    CUDNN_DATA_FLOAT = 0,
    CUDNN_DATA_INT32 = 4,
    CUDNN_DATA_BFLOAT16 = 9,
    CUDNN_DATA_BOOLEAN = 11,
};

enum cudnn_pointwise {
    CUDNN_POINTWISE_ADD = 0,
    CUDNN_POINTWISE_MUL = 1,
    CUDNN_POINTWISE_DIV = 6,
    CUDNN_POINTWISE_SUB = 9,
    CUDNN_POINTWISE_EXP = 13,
    CUDNN_POINTWISE_LOG = 15,
    CUDNN_POINTWISE_IDENTITY = 21,
    CUDNN_POINTWISE_CMP_GE = 303,
    CUDNN_POINTWISE_GEN_INDEX = 501,
    CUDNN_POINTWISE_BINARY_SELECT = 601,
};

enum cudnn_reduction { CUDNN_REDUCE_TENSOR_ADD = 0, CUDNN_REDUCE_TENSOR_MAX = 3 };
enum { CUDNN_HEUR_MODE_A = 3, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC = 4 };
enum { CUDNN_NUMERICAL_NOTE_TYPE_COUNT = 10 }; /* room for those an engine has */

enum cudnn_kind { /* of a descriptor */
                  CUDNN_BACKEND_POINTWISE_DESCRIPTOR = 0,
                  CUDNN_BACKEND_ENGINE_DESCRIPTOR = 2,
                  CUDNN_BACKEND_ENGINECFG_DESCRIPTOR = 3,
                  CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR = 4,
                  CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR = 5,
                  CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR = 13,
                  CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR = 15,
                  CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR = 16,
                  CUDNN_BACKEND_TENSOR_DESCRIPTOR = 17,
                  CUDNN_BACKEND_MATMUL_DESCRIPTOR = 18,
                  CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR = 19,
                  CUDNN_BACKEND_REDUCTION_DESCRIPTOR = 21,
                  CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR = 22,
                  CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR = 31,
                  CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR = 38,
};

enum cudnn_attribute {
    CUDNN_ATTR_POINTWISE_MODE = 0,
    CUDNN_ATTR_POINTWISE_MATH_PREC = 1,
    CUDNN_ATTR_POINTWISE_AXIS = 9,
    CUDNN_ATTR_ENGINEHEUR_MODE = 200,
    CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH = 201,
    CUDNN_ATTR_ENGINEHEUR_RESULTS = 202,
    CUDNN_ATTR_ENGINEHEUR_DEVICEPROP = 204,
    CUDNN_ATTR_ENGINECFG_ENGINE = 300,
    CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG = 401,
    CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE = 402,
    CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP = 407,
    CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR = 750,
    CUDNN_ATTR_OPERATION_POINTWISE_XDESC = 751,
    CUDNN_ATTR_OPERATION_POINTWISE_BDESC = 752,
    CUDNN_ATTR_OPERATION_POINTWISE_YDESC = 753,
    CUDNN_ATTR_OPERATION_POINTWISE_TDESC = 758,
    CUDNN_ATTR_OPERATIONGRAPH_OPS = 801,
    CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT = 900,
    CUDNN_ATTR_TENSOR_DATA_TYPE = 901,
    CUDNN_ATTR_TENSOR_DIMENSIONS = 902,
    CUDNN_ATTR_TENSOR_STRIDES = 903,
    CUDNN_ATTR_TENSOR_UNIQUE_ID = 906,
    CUDNN_ATTR_TENSOR_IS_VIRTUAL = 907,
    CUDNN_ATTR_TENSOR_IS_BY_VALUE = 908,
    CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS = 1000,
    CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS = 1001,
    CUDNN_ATTR_VARIANT_PACK_WORKSPACE = 1003,
    CUDNN_ATTR_ENGINE_NUMERICAL_NOTE = 1303,
    CUDNN_ATTR_MATMUL_COMP_TYPE = 1500,
    CUDNN_ATTR_OPERATION_MATMUL_ADESC = 1520,
    CUDNN_ATTR_OPERATION_MATMUL_BDESC = 1521,
    CUDNN_ATTR_OPERATION_MATMUL_CDESC = 1522,
    CUDNN_ATTR_OPERATION_MATMUL_DESC = 1523,
    CUDNN_ATTR_REDUCTION_OPERATOR = 1600,
    CUDNN_ATTR_REDUCTION_COMP_TYPE = 1601,
    CUDNN_ATTR_OPERATION_REDUCTION_XDESC = 1610,
    CUDNN_ATTR_OPERATION_REDUCTION_YDESC = 1611,
    CUDNN_ATTR_OPERATION_REDUCTION_DESC = 1612,
    CUDNN_ATTR_OPERATION_RESHAPE_XDESC = 2200,
    CUDNN_ATTR_OPERATION_RESHAPE_YDESC = 2201,
    CUDNN_ATTR_DEVICEPROP_DEVICE_ID = 2700,
    CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION = 2702,
};

typedef struct cudnnContext *cudnn_handle;
typedef void *cudnn_descriptor;

/* What returns int returns a cudnnStatus_t: 0, or what failed. */
struct cudnn_api {
    size_t (*version)(void);
    size_t (*cuda_version)(void); /* that it was built with: 13000 */
    const char *(*status_text)(int status);
    void (*last_error)(char *message, size_t bytes); /* of this thread: more than the status says */
    int (*create)(cudnn_handle *handle);
    int (*destroy)(cudnn_handle handle);
    int (*set_stream)(cudnn_handle handle, void *stream);
    int (*descriptor_create)(int kind, cudnn_descriptor *descriptor);
    int (*descriptor_destroy)(cudnn_descriptor descriptor);
    int (*set)(cudnn_descriptor descriptor, int attribute, int type, int64_t count,
               const void *elements);
    /* Elements that are descriptors must be there before: they are filled. */
    int (*get)(cudnn_descriptor descriptor, int attribute, int type, int64_t room, int64_t *count,
               void *elements);
    int (*finalize)(cudnn_descriptor descriptor);
    int (*execute)(cudnn_handle handle, cudnn_descriptor plan, cudnn_descriptor pack);
};

/* Finds libcudnn.so.9 (base/library.h) and fills the table. It loads its parts from beside it by
 * itself; CUDA's compiler libnvrtc, which it asks for by name alone, is loaded here where the same
 * search finds it. Errors: library_open()'s; ERR_INPUT: a part of it is missing or of another
 * version; ERR_UNSUPPORTED: too old. */
int cudnn_api_open(struct cudnn_api *ret_api, struct error *err);

/* The cuDNN that cudnn_api_open() would take, and its compiler. False: cuDNN cannot be used, and
 * nothing asks for a compiler. */
bool cudnn_api_describe(struct library_facts *ret, struct library_facts *ret_compiler);

#ifdef __cplusplus
}
#endif
#endif
