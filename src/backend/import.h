/// Importing for a backend: an ATen call whose nodes all have kernels.
#ifndef TOR_BACKEND_IMPORT_H
#define TOR_BACKEND_IMPORT_H

#include "aten/import.h"

/// As tor_aten_call(), and refuses what no kernel of this build runs, so that the host can run that
/// one call itself. The nodes it added are then dead.
ToroidStatus tor_backend_import(TorGraph *g, const char *name, const TorArg *args, int n_args,
                                const char *const *kw_names, const TorArg *kw_args, int n_kw,
                                const char *origin, TorArg *result);

#endif
