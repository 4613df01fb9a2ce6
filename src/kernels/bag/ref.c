/// The oracle of the bag family, an element at a time.
#include <math.h>

#include "kernels/bag/contract.h"

static double value(const TorBagArgs *a, const void *data, int64_t at) {
    return tor_scalar_load((const char *)data + at * (int64_t)tor_dtype_size(a->dtype), a->dtype).f;
}

static bool in_table(const TorBagArgs *a, int64_t at) { return at >= 0 && at < a->rows; }

void tor_bag_run_ref(const TorBagArgs *a) {
    for (int64_t bag = 0; bag < a->bags; bag++) {
        int64_t first, end;
        tor_bag_range(a, bag, &first, &end);
        for (int64_t i = first; i < end; i++)
            if (!in_table(a, tor_bag_integer(a, a->index, i * a->index_stride))) *a->error = 1;
        for (int64_t j = 0; j < a->width; j++) {
            int64_t used = 0;
            TorScalar sum = {.dtype = a->dtype};
            for (int64_t i = first; i < end; i++) {
                int64_t at = tor_bag_integer(a, a->index, i * a->index_stride);
                if (!in_table(a, at) || at == a->padding_idx) continue;
                double x = value(a, a->w, at * a->w_row + j * a->w_col);
                if (a->factor) x *= value(a, a->factor, i * a->factor_stride);
                if (a->mode != TOR_BAG_max)
                    sum.f += x;
                else if (!used || x > sum.f || isnan(x))
                    sum.f = x;
                used++;
            }
            if (a->mode == TOR_BAG_mean && used) sum.f /= (double)used;
            int64_t to = bag * a->y_row + j;
            tor_scalar_store((char *)a->y + to * (int64_t)tor_dtype_size(a->dtype), sum);
        }
    }
}
