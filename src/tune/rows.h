/// Lines of the tuner's files: fields between commas, blanks around them left out. Empty lines and
/// those that begin with '#' are passed over.
#ifndef TOR_TUNE_ROWS_H
#define TOR_TUNE_ROWS_H

#include "base/text.h"
#include "tune/table.h"

enum { TOR_ROW_FIELDS = 4 };

typedef struct {
    const char *field[TOR_ROW_FIELDS];
    size_t length[TOR_ROW_FIELDS];
    int count;         ///< TOR_ROW_FIELDS + 1: there are more
    const char *tail;  ///< the third field with all that follows it: a validator may have commas
    size_t tail_length;
} TorRow;

/// What is still to be read; the text need not end in 0.
typedef struct {
    const char *at, *end;
    int line;  ///< of the row that was read last, from 1
} TorRows;

bool tor_rows_next(TorRows *rows, TorRow *row);

bool tor_row_is_validator(const TorRow *row);
/// @return false for what is no row "op,params,solution[,mean_ms]"
bool tor_row_result(const TorRow *row, TorTuneResult *out);
/// @return false for what is no row "op,params"; the solution is then "", the time not known
bool tor_row_untuned(const TorRow *row, TorTuneResult *out);
/// Whether a file can hold the texts: neither empty nor with characters that rows give a meaning.
bool tor_row_fits(const TorTuneResult *result, bool with_solution);
void tor_row_print(const TorTuneResult *result, bool with_solution, TorText *text);

#endif
