/// A table of operators, each once, in the order in which they came.
#ifndef TOR_TUNE_TABLE_H
#define TOR_TUNE_TABLE_H

#include "base/status.h"

enum { TOR_TUNE_OP = 64, TOR_TUNE_PARAMS = 512, TOR_TUNE_SOLUTION = 96 };  // with the final 0

/// No text has a comma, a quote or white space.
typedef struct {
    char op[TOR_TUNE_OP], params[TOR_TUNE_PARAMS], solution[TOR_TUNE_SOLUTION];
    double mean_ms;  ///< < 0: not known
} TorTuneResult;

/// {0} is an empty table. No thread but one at a time.
typedef struct {
    TorTuneResult *rows;
    size_t count, capacity;
    uint32_t *slots;  ///< 1 + a row's number, by hash; 0: free
    size_t n_slots;   ///< a power of two
} TorTuneTable;

/// The table's, until the next add; NULL: not there.
const TorTuneResult *tor_tune_table_find(const TorTuneTable *table, const char *op,
                                         const char *params);
/// Keeps the first row of an operator. `*added` tells whether this was it.
ToroidStatus tor_tune_table_add(TorTuneTable *table, const TorTuneResult *row, bool *added);
void tor_tune_table_free(TorTuneTable *table);

#endif
