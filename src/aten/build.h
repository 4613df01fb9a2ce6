/// What the op files of the importer are written with.
///
/// One call of the importer is a TorCall. Its helpers keep the first failure in `status` and then
/// do nothing, so that an op reads as a formula: `return RETURN(F2(mul, x, F1(sigmoid, x)));`. A
/// helper that gives a value gives NULL after a failure and takes NULL for one.
#ifndef TOR_ATEN_BUILD_H
#define TOR_ATEN_BUILD_H

#include "aten/import.h"
#include "aten/promote.h"

#define TOR_ATEN_MAX_PARAMS 16

typedef struct TorCall TorCall;

/// One row an op. `schema` is PyTorch's less the types: "self, mat1, mat2, *, beta=1, alpha=1".
typedef struct {
    const char *name, *schema;
    ToroidStatus (*import)(TorCall *c);
    int op;  ///< for functions that serve several rows: a TorOp or what the function says
} TorAtenRow;

typedef struct {
    const TorAtenRow *rows;
    int count;
} TorAtenTable;

struct TorCall {
    TorGraph *g;
    const TorAtenRow *row;
    const char *origin;
    int n_args;
    TorArg args[TOR_ATEN_MAX_PARAMS];  ///< in schema order, defaults filled in
    ToroidStatus status;               ///< the first failure
    TorArg *result;
};

/// Puts arguments into schema order.
ToroidStatus tor_schema_bind(TorCall *c, const TorArg *args, int n_args,
                             const char *const *kw_names, const TorArg *kw_args, int n_kw);
/// Name of parameter `i` of a schema into `text`; returns text, "" if there is none.
const char *tor_schema_param(const char *schema, int i, char *text, size_t bytes);

// ---------------------------------------------------------------- failing

/// "<name>: <message>"; keeps the first failure. Returns the call's status.
ToroidStatus tor_im_refuse(TorCall *c, const char *format, ...) TOR_PRINTF(2, 3);
/// "<name>: argument '<param>': <message>".
ToroidStatus tor_im_refuse_arg(TorCall *c, int i, const char *format, ...) TOR_PRINTF(3, 4);
/// Keeps a status that a graph function gave, with the op's name before its message.
ToroidStatus tor_im_check(TorCall *c, ToroidStatus status);

// ---------------------------------------------------------------- arguments

static inline bool tor_im_has(const TorCall *c, int i) { return c->args[i].kind != TOR_ARG_NONE; }
TorValue *tor_im_tensor(TorCall *c, int i);
TorValue *tor_im_tensor_or_null(TorCall *c, int i);  ///< NULL for None, with no failure
bool tor_im_flag(TorCall *c, int i);
int64_t tor_im_int(TorCall *c, int i);  ///< must be known when compiling
double tor_im_float(TorCall *c, int i);
TorDim tor_im_dim(TorCall *c, int i);
TorDtype tor_im_dtype(TorCall *c, int i, TorDtype or_dtype);
const char *tor_im_str(TorCall *c, int i, const char *or_str);
/// A list of integers (or one integer) into `out`; returns the count. At most TOR_MAX_RANK.
int tor_im_dims(TorCall *c, int i, TorDim *out);
/// The same for integers that must be known; one integer, or a list of one, fills all of `count`.
void tor_im_ints(TorCall *c, int i, int64_t *out, int count);
int tor_im_int_list(TorCall *c, int i, int64_t *out);
/// An axis, wrapped into [0, max(rank, 1)).
int tor_im_axis(TorCall *c, int i, int rank);
int tor_im_wrap_axis(TorCall *c, int64_t axis, int rank);
/// Axes of a reduction, sorted; None and the empty list mean all. Returns the count.
int tor_im_axes(TorCall *c, int i, int rank, int64_t *out);
/// A list of tensors, or NULL entries for None where `optional`; returns the count.
int tor_im_tensors(TorCall *c, int i, TorValue **out, int max, bool optional);
/// Refuses a device other than the CPU; None passes.
void tor_im_cpu_only(TorCall *c, int i);

/// An operand of an elementwise op: a tensor or a number.
typedef struct {
    TorValue *value;  ///< of a tensor, or of an integer that is not known (0-d int64)
    bool is_number;
    TorScalar number;  ///< bool, int64 or float64; with `value` set only the dtype holds
} TorOperand;
TorOperand tor_im_operand(TorCall *c, int i);
TorOperand tor_im_operand_of(TorValue *value);
TorDtype tor_im_promote(const TorOperand *operands, int count);
/// The operand as something that a scalar function of type `dtype` takes. A number stays a weak
/// constant, first rounded to `dtype` if `round` (eager rounds it for most ops of half types).
TorValue *tor_im_convert(TorCall *c, TorOperand operand, TorDtype dtype, bool round);

// ---------------------------------------------------------------- nodes

TorValue *tor_im_add(TorCall *c, TorOp op, TorValue *const *inputs, int n_inputs,
                     const TorAttr *attrs, int n_attrs);
TorValue *tor_im_map(TorCall *c, TorOp op, TorValue *a, TorValue *b,
                     TorValue *d);  ///< NULL where the arity ends
TorValue *tor_im_float_number(TorCall *c, double number);
TorValue *tor_im_int_number(TorCall *c, int64_t number);
TorValue *tor_im_cast(TorCall *c, TorValue *x, TorDtype dtype);  ///< x itself if it has that type
TorValue *tor_im_up(TorCall *c, TorValue *x);                    ///< half types to float32
TorValue *tor_im_to_bool(TorCall *c, TorValue *x);
TorValue *tor_im_full(TorCall *c, TorScalar value, TorDtype dtype, int rank, const TorDim *dims);
/// The same values as one element that is repeated, for operands that are read only.
TorValue *tor_im_repeated(TorCall *c, TorScalar value, TorDtype dtype, int rank,
                          const TorDim *dims);
/// A 0-d int64 tensor that holds an integer of the graph.
TorValue *tor_im_dim_tensor(TorCall *c, TorDim dim);
TorValue *tor_im_arange(TorCall *c, TorDim count, TorDim start, int64_t step, TorDtype dtype);

TorValue *tor_im_view(TorCall *c, TorValue *x, int rank,
                      const TorDim *dims);  ///< x itself if nothing changes
TorValue *tor_im_expand(TorCall *c, TorValue *x, int rank, const TorDim *dims);
TorValue *tor_im_permute(TorCall *c, TorValue *x, const int64_t *axes);
TorValue *tor_im_transpose(TorCall *c, TorValue *x, int a, int b);
TorValue *tor_im_unsqueeze(TorCall *c, TorValue *x, int axis);
TorValue *tor_im_squeeze(TorCall *c, TorValue *x, int axis);  ///< drops the axis, whatever its size
TorValue *tor_im_at_least_1d(TorCall *c, TorValue *x);        ///< a 0-d tensor as a line of one
TorValue *tor_im_contiguous(TorCall *c, TorValue *x);
/// `count` items of `axis` from `start` on (0 <= start, in range).
TorValue *tor_im_slice(TorCall *c, TorValue *x, int axis, TorDim start, int64_t step, TorDim count);
TorValue *tor_im_cat(TorCall *c, TorValue *const *parts, int count, int axis);
TorValue *tor_im_reduce(TorCall *c, TorOp op, TorValue *x, const int64_t *axes, int n_axes,
                        bool keepdim);
/// var over axes in float32 or float64.
TorValue *tor_im_var(TorCall *c, TorValue *x, const int64_t *axes, int n_axes, bool keepdim,
                     double correction);
/// Batched product with numpy's broadcasting, of operands of one type.
TorValue *tor_im_matmul(TorCall *c, TorValue *a, TorValue *b);
/// x with shape [c] seen against a tensor of `rank` whose channels are on axis 1.
TorValue *tor_im_channels(TorCall *c, TorValue *x, int rank);

/// An index tensor of any rank (argument `arg`, for messages): int64, int32, or uint8 where that is
/// no mask.
TorValue *tor_im_index(TorCall *c, TorValue *index, int arg);
/// Argument `arg` as a 1-d index tensor; a 0-d one becomes a vector of one.
TorValue *tor_im_index_vector(TorCall *c, int arg);

TorDim tor_im_const(TorCall *c, int64_t value);
/// `axis` of the broadcast shape of the two, both counted from the right.
int tor_im_broadcast(TorCall *c, const TorDim *a, int rank_a, const TorDim *b, int rank_b,
                     TorDim *out);
/// i + size if i < 0.
TorDim tor_im_wrap_index(TorCall *c, TorDim i, TorDim size);
uint32_t tor_im_input_index(const TorValue *x);  ///< of a graph input
/// A stride of a graph input: what the frontend promised, else read when the graph is bound.
TorDim tor_im_input_stride(TorCall *c, const TorValue *x, int axis);
/// Elements of the diagonal `offset` of dims a and b.
TorDim tor_im_diagonal_size(TorCall *c, const TorValue *x, int a, int b, int64_t offset);
/// The smaller; knows equal integers.
TorDim tor_im_min(TorCall *c, TorDim a, TorDim b);
TorDim tor_im_max(TorCall *c, TorDim a, TorDim b);

// ---------------------------------------------------------------- results

ToroidStatus tor_im_return(TorCall *c, TorValue *value);
ToroidStatus tor_im_return_list(TorCall *c, TorValue *const *values,
                                int count);              ///< NULL entries are NONE
ToroidStatus tor_im_return_dim(TorCall *c, TorDim dim);  ///< INT if known
ToroidStatus tor_im_return_none(TorCall *c);

// The vocabulary of formulas; `c` is the call at hand.
#define F1(fn, a) tor_im_map(c, TOR_OP_##fn, (a), NULL, NULL)
#define F2(fn, a, b) tor_im_map(c, TOR_OP_##fn, (a), (b), NULL)
#define F3(fn, a, b, d) tor_im_map(c, TOR_OP_##fn, (a), (b), (d))
#define NUM(x) tor_im_float_number(c, (x))
#define RETURN(value) tor_im_return(c, (value))

#endif
