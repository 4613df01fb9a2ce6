/// The op tables, one a theme. A new theme is one more word here.
#ifndef TOR_ATEN_TABLES_H
#define TOR_ATEN_TABLES_H

#include "aten/build.h"

// clang-format off
#define TOR_ATEN_TABLES(X)                                                      \
    X(integers) X(pointwise) X(compare) X(activation) X(convert) X(create)      \
    X(view) X(slice) X(join) X(reduce) X(norm) X(matmul) X(attention) X(conv)   \
    X(index) X(scatter) X(order) X(resize) X(rnn) X(loss)
// clang-format on

#define X(theme) extern const TorAtenTable tor_aten_##theme##_ops;
TOR_ATEN_TABLES(X)
#undef X

#define TOR_ATEN_TABLE(theme, rows_) \
    const TorAtenTable tor_aten_##theme##_ops = {rows_, (int)TOR_COUNT_OF(rows_)}

#endif
