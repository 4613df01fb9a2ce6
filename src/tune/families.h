/// The families that can be tuned, and their problems.
#ifndef TOR_TUNE_FAMILIES_H
#define TOR_TUNE_FAMILIES_H

#include "kernels/attention/contract.h"
#include "kernels/conv/contract.h"
#include "kernels/gemm/contract.h"
#include "tune/providers.h"
#include "tune/tunable.h"

/// One line a family: a file of its own defines tor_tunable_<name>.
#define TOR_TUNABLES(X) X(gemm) X(conv) X(attention) X(map)

#define X(family) extern const TorTunable tor_tunable_##family;
TOR_TUNABLES(X)
#undef X

/// The planner's step arguments are problems, so that nothing is copied at a bind.
typedef struct {
    TorGemmArgs gemm;
    TorEpilogue epilogue;  ///< gemm.epilogue points here, or is NULL
    TorDtype dtype;
    bool has_bias;
    // The choice of another library's product; see gemm_provided.h.
    const TorProvider *provider;  ///< NULL: the family's own kernels
    int64_t block_rows, block_cols;
    TorTuneFailure *failure;  ///< NULL in a run, which does without the provider then
} TorGemmProblem;

typedef struct {
    TorConvArgs conv;
    TorEpilogue epilogue;  ///< conv.epilogue points here, or is NULL
    bool has_bias;
    // For steps that cannot be tuned:
    TorGemmArgs gemm;        ///< for other types than float32
    TorConvPackArgs weight;  ///< for the oracle, which packs nothing
    TorDtype dtype;
} TorConvProblem;

// That of attention is TorAttentionArgs.

/// A pointwise program, with reductions or without, over an index space that is not merged yet.
typedef struct {
    const TorPrepared *prepared;
    TorMapArgs *args;  ///< what bind fills and runs; it may be shorter than its type
    int rank, row_rank;
    int64_t size[TOR_MAP_RANK], stride[TOR_MAP_OPERANDS][TOR_MAP_RANK];
} TorMapProblem;

#endif
