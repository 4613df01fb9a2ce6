// The tuner's part in a bind.
#include "plan/step.h"

void tor_bind_tunable(TorBinder *b, const TorTunable *t, void *problem, const void *asked) {
    static const TorTuneChoice none;
    TorLaunch launch = {0};
    if (b->ask) tor_tune_choose(t, asked, b->ask, b->choice);
    t->set(problem, b->choice ? b->choice : &none);
    t->bind(problem, &launch);
    for (int i = 0; i < launch.n_calls; i++) b->calls[b->n_calls++] = launch.calls[i];
    b->scratch_bytes = launch.scratch_bytes;
    b->shared_bytes = launch.shared_bytes;
}

void tor_bind_tunable_args(TorBinder *b, const TorTunable *t,
                           void (*fill)(const void *data, const int64_t *ints, void *args),
                           const void *data) {
    const void *asked = b->args;
    if (b->bucket_args) {
        fill(data, b->bucket_ints, b->bucket_args);
        asked = b->bucket_args;
    }
    tor_bind_tunable(b, t, b->args, asked);
}
