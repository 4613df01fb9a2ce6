/// A matrix product whose multiplication another library does, in blocks, each with bias and
/// epilogue.
///
/// Blocks are cut by sizes and choice, not by the number of threads, so answers are the same for
/// any. Packed b is Toroid's own format, so such products are not for others.
#ifndef TOR_TUNE_GEMM_PROVIDED_H
#define TOR_TUNE_GEMM_PROVIDED_H

#include "tune/families.h"

/// Whether a provider may be asked for it: b in strides, a and b row by row or column by column.
bool tor_gemm_provided_takes(const TorGemmArgs *gemm);
/// The blocks that bind cuts where gemm.mc and gemm.nc leave it to it: by sizes alone.
void tor_gemm_provided_blocks(const TorGemmArgs *gemm, int64_t *rows, int64_t *cols);
/// Binds a problem whose provider is set, for blocks of gemm.mc rows by gemm.nc columns; 0: a size
/// that bind chooses.
void tor_gemm_provided_bind(TorGemmProblem *problem, TorLaunch *launch);

#endif
