/// The params of an operator as text: fields "name=1:2:3", separated by ";".
///
/// A reader takes the fields in the order in which they were put. It never fails at once: the first
/// fault is kept, numbers are 0 from then on, and tor_params_end() tells.
#ifndef TOR_TUNE_PARAMS_H
#define TOR_TUNE_PARAMS_H

#include "base/text.h"

void tor_params_put(TorText *t, const char *name, int64_t value);
void tor_params_put_list(TorText *t, const char *name, const int64_t *values, int count);

typedef struct {
    const char *text, *at;
    const char *wrong;  ///< the field that was not as expected
} TorParams;

TorParams tor_params_read(const char *text);
/// A number in [least, most].
int64_t tor_params_get(TorParams *p, const char *name, int64_t least, int64_t most);
/// As many numbers as the field has, at most `most_count`.
int tor_params_get_list(TorParams *p, const char *name, int64_t *values, int most_count,
                        int64_t least, int64_t most);
/// Sizes or strides, exactly `count` of them.
void tor_params_get_all(TorParams *p, const char *name, int64_t *values, int count);
/// The next field's text, which ends at ";" or at the end, if its name is this; else NULL.
const char *tor_params_text(TorParams *p, const char *name, size_t *length);
ToroidStatus tor_params_end(const TorParams *p);

/// Sizes and strides in a file: what is larger is no problem that was ever run.
#define TOR_PARAMS_MOST ((int64_t)1 << 31)
/// Whether size x stride of all dims reaches an element, and memory for all of them could be had;
/// *elements is how many that is.
bool tor_params_extent(const int64_t *size, const int64_t *stride, int rank, int64_t *elements);

#endif
