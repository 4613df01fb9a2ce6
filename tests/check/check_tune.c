// The tuner under each instruction set: whatever is chosen, the answer is right. With --bench, how
// good its picks are: 30 problems drawn by the seed are tuned, then all candidates are timed again
// in turns at length.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "tune/check.h"
#include "tune/families.h"
#include "tune/tuner.h"

static int64_t pick(const int64_t *from, int count) { return from[tor_check_range(0, count - 1)]; }
#define PICK(...) \
    pick((const int64_t[]){__VA_ARGS__}, (int)TOR_COUNT_OF(((const int64_t[]){__VA_ARGS__})))

static void draw_gemm(TorText *t, bool small) {
    int64_t m = small ? tor_check_range(1, 70) : PICK(1, 2, 8, 32, 100, 128),
            n = small ? tor_check_range(1, 100) : PICK(64, 256, 768, 1000, 2048),
            k = small ? tor_check_range(1, 600) : PICK(64, 256, 768, 1024, 2816);
    bool packed = tor_check_coin();
    tor_text_put(t, "m=%" PRId64 ";n=%" PRId64 ";k=%" PRId64, m, n, k);
    if (packed)
        tor_text_put(t, ";a=%" PRId64 ":1;packed=1;b=0:0", k);
    else if (tor_check_coin())
        tor_text_put(t, ";a=%" PRId64 ":1;packed=0;b=%" PRId64 ":1", k, n);
    else
        tor_text_put(t, ";a=1:%" PRId64 ";packed=0;b=1:%" PRId64, m, k);
    tor_text_put(t, ";c=%" PRId64 ";bias=%d", n, tor_check_coin());
    if (tor_check_coin())
        tor_text_put(t,
                     ";epilogue=ff.f.1.0|gelu_erf.ffr0i0|add.ffo0r0i1;strides=0:%" PRId64
                     ":1:0:%" PRId64 ":1",
                     n, n);
}

static void draw_conv(TorText *t, bool small) {
    int64_t c = small ? tor_check_range(1, 40) : PICK(3, 16, 64, 128, 256),
            o = small ? tor_check_range(1, 70) : PICK(16, 64, 128, 256, 512),
            size = small ? tor_check_range(3, 15) : PICK(7, 14, 28), kernel = PICK(1, 3),
            groups = 1;
    if (tor_check_coin() && tor_check_coin()) groups = o = c;
    int64_t stride = PICK(1, 2), pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1;
    tor_text_put(t, "b=1;c=%" PRId64 ";o=%" PRId64 ";groups=%" PRId64, c, o, groups);
    tor_text_put(t, ";in=1:%" PRId64 ":%" PRId64 ";out=1:%" PRId64 ":%" PRId64, size, size, out,
                 out);
    tor_text_put(t, ";kernel=1:%" PRId64 ":%" PRId64 ";stride=1:%" PRId64 ":%" PRId64, kernel,
                 kernel, stride, stride);
    tor_text_put(t, ";padding=0:%" PRId64 ":%" PRId64 ";dilation=1:1:1", pad, pad);
    tor_text_put(t, ";x=%" PRId64 ":1:%" PRId64 ":%" PRId64 ":%" PRId64, c * size * size,
                 c * size * size, c * size, c);
    tor_text_put(t, ";y=%" PRId64 ":1:%" PRId64 ":%" PRId64 ":%" PRId64, o * out * out,
                 o * out * out, o * out, o);
    tor_text_put(t, ";transposed=0;bias=1");
    if (kernel == 3 && stride == 1 && groups == 1 && tor_check_coin())
        tor_text_put(t, ";winograd=1");
    if (tor_check_coin())
        tor_text_put(t, ";epilogue=f.f.0.0|relu.ffo0i0;strides=0:%" PRId64 ":1", o);
}

static void put_dense(TorText *t, const char *name, int64_t heads, int64_t rows, int64_t width) {
    tor_text_put(t, ";%s=%" PRId64 ":%" PRId64 ":%" PRId64 ":1", name, heads * rows * width,
                 rows * width, width);
}

static void draw_attention(TorText *t, bool small) {
    int64_t g = PICK(1, 2, 4), h = g * PICK(1, 1, 3),
            m = small ? tor_check_range(1, 60) : PICK(1, 4, 64, 128, 384),
            n = small ? tor_check_range(1, 300) : PICK(64, 128, 384, 1500),
            d = small ? tor_check_range(1, 40) : PICK(32, 64, 128);
    tor_text_put(t, "b=2;h=%" PRId64 ":%" PRId64 ";m=%" PRId64 ";n=%" PRId64, h, g, m, n);
    tor_text_put(t, ";d=%" PRId64 ":%" PRId64, d, d);
    put_dense(t, "q", h, m, d), put_dense(t, "k", g, n, d), put_dense(t, "v", g, n, d);
    put_dense(t, "out", h, m, d);
    if (tor_check_coin()) put_dense(t, tor_check_coin() ? "mask_f32" : "mask_bool", h, m, n);
    if (tor_check_coin()) {
        put_dense(t, "keep", h, m, n);
        tor_text_put(t, ";fill_bits=%d", tor_check_coin() ? -8388609 : -8388608);  // -FLT_MAX, -inf
    }
    tor_text_put(t, ";causal=%d;nan_rows=0;scale_bits=1040187392", tor_check_coin());
}

static void draw_map(TorText *t, bool small) {
    int64_t rows = small ? tor_check_range(1, 30) : PICK(16, 128, 512),
            cols = small ? tor_check_range(1, 700) : PICK(64, 768, 1024, 3072);
    bool softmax = tor_check_coin();
    tor_text_put(t, "size=%" PRId64 ":%" PRId64 ";row=%d;program=", rows, cols, softmax);
    tor_text_add(t, softmax ? "f.f.2.2|+max.fv0i0|/|sub.ffr0i0v0|exp.ffr1r0|+sum.fv1r1|/|"
                              "div.ffo0r1v1"
                            : "ff.f.1.0|silu.ffr0i0|mul.ffo0r0i1");
    for (int i = 0; i < 3 - softmax; i++) tor_text_put(t, ";s=%" PRId64 ":1", cols);
}

static const struct {
    const TorTunable *family;
    void (*draw)(TorText *t, bool small);
} families[] = {{&tor_tunable_gemm, draw_gemm},
                {&tor_tunable_conv, draw_conv},
                {&tor_tunable_attention, draw_attention},
                {&tor_tunable_map, draw_map}};

static bool draw(int family, bool small, TorArena *arena, char text[TOR_TUNE_PARAMS],
                 void **problem) {
    TorText params = tor_text_fixed(text, TOR_TUNE_PARAMS);
    families[family].draw(&params, small);
    if (families[family].family->parse(text, arena, problem) == TOROID_OK) return true;
    tor_check_fail("%s", toroid_last_error());
    return false;
}

// ---------------------------------------------------------------- any choice is right

static void run_choice(const TorTunable *t, void *problem, const TorTuneMemory *m,
                       const TorTuneChoice *choice) {
    TorLaunch launch = {0};
    t->set(problem, choice);
    t->bind(problem, &launch);
    void *scratch = tor_alloc(launch.scratch_bytes), *shared = tor_alloc(launch.shared_bytes);
    if (launch.shared) *launch.shared = shared;
    tor_tune_memory_reset(m);
    for (int i = 0; i < launch.n_calls; i++)
        launch.calls[i].run(launch.calls[i].args, 0, launch.calls[i].items, scratch);
    tor_free(scratch), tor_free(shared);
}

static TorTuneChoice draw_choice(void) {
    TorTuneChoice choice = {0};
    for (int k = 0; k < TOR_TUNE_KNOBS; k++)
        if (tor_check_coin()) choice.knob[k] = PICK(1, 2, 3, 7, 24, 33, 100, 512, 4096, INT32_MAX);
    if (tor_check_coin()) choice.row = tor_check_range(1, 9);
    return choice;
}

static void check_problem(int family) {
    const TorTunable *t = families[family].family;
    TorTuneSettings settings = {.check = false};
    TorArena *arena;
    if (tor_arena_create(&arena) != TOROID_OK) abort();
    char params[TOR_TUNE_PARAMS], solution[TOR_TUNE_SOLUTION];
    void *problem;
    TorTuneMemory memory = {0};
    TorTuneAnswer answer = {0};
    if (draw(family, true, arena, params, &problem) &&
        tor_tune_memory_create(&memory, t, problem, 0) == TOROID_OK) {
        tor_check_case("%s %s", t->op, params);
        run_choice(t, problem, &memory, &(TorTuneChoice){0});
        TOR_CHECK(tor_tune_answer_keep(&answer, &memory) == TOROID_OK);
        for (int round = 0; round < 12; round++) {
            TorTuneChoice choice = draw_choice();
            // A number of another family's rows means nothing here.
            if (!t->row || !t->row((int)choice.row - 1)) choice.row = 0;
            run_choice(t, problem, &memory, &choice);
            if (tor_tune_answer_compare(&answer, &memory, &settings) == TOROID_OK) continue;
            tor_choice_print(t, &choice, solution, sizeof solution);
            tor_check_fail("%s: %s", solution, toroid_last_error());
        }
        tor_check_done();
    }
    tor_tune_answer_free(&answer);
    tor_tune_memory_free(&memory);
    tor_arena_destroy(&arena);
}

static void any_choice(void) {
    for (int round = 0; round < 60; round++)
        for (int family = 0; family < (int)TOR_COUNT_OF(families); family++) check_problem(family);
}

// ---------------------------------------------------------------- how good picks are

typedef struct {
    double gain, loss;  ///< logs: of the pick against Default, of the best against the pick
    bool close;
} Grade;

static Grade grade(int family) {
    const TorTunable *t = families[family].family;
    TorTuneSettings settings = tor_tune_settings();
    TorArena *arena;
    if (tor_arena_create(&arena) != TOROID_OK) abort();
    char params[TOR_TUNE_PARAMS], solution[TOR_TUNE_SOLUTION], best_solution[TOR_TUNE_SOLUTION];
    void *problem;
    TorTuned tuned;
    TorTuneList list = {.count = 0};
    double ms[TOR_TUNE_CANDIDATES + 1];
    Grade g = {0};
    while (!draw(family, false, arena, params, &problem)) continue;
    if (tor_tune_problem(t, problem, 1, &settings, &tuned) != TOROID_OK) {
        printf("%s %s: %s\n", t->op, params, toroid_last_error());
        tor_arena_destroy(&arena);
        return g;
    }
    void *bound = t->copy(problem, arena);
    TorLaunch launch = {0};
    t->set(bound, &(TorTuneChoice){0});
    t->bind(bound, &launch);
    t->candidates(bound, 1, &list);
    TorTuneChoice all[TOR_TUNE_CANDIDATES + 1] = {{0}};  // Default and each candidate, once
    int count = 1 + list.count, pick = 0, best = 0;
    for (int i = 1; i < count; i++) {
        all[i] = list.choice[i - 1];
        if (memcmp(&all[i], &tuned.choice, sizeof all[i]) == 0) pick = i;
    }
    if (tor_tune_times(t, problem, 1, &settings, all, count, ms) == TOROID_OK) {
        for (int i = 1; i < count; i++)
            if (ms[i] < ms[best]) best = i;
        g.gain = log(ms[0] / ms[pick]), g.loss = log(ms[pick] / ms[best]);
        g.close = g.loss < log(1.05);
        tor_choice_print(t, &tuned.choice, solution, sizeof solution);
        tor_choice_print(t, &all[best], best_solution, sizeof best_solution);
        printf("%-13s %8.4f ms Default %8.4f %-28s %8.4f %-28s %5.3f %.90s\n", t->op, ms[0],
               ms[pick], solution, ms[best], best_solution, ms[pick] / ms[best], params);
        fflush(stdout);
    }
    tor_arena_destroy(&arena);
    return g;
}

static void picks(void) {
    enum { COUNT = 30 };
    double gain = 0, loss = 0;
    int close = 0;
    for (int i = 0; i < COUNT; i++) {
        Grade g = grade(i % (int)TOR_COUNT_OF(families));
        gain += g.gain, loss += g.loss, close += g.close;
    }
    printf("%d of %d picks within 5 %% of the best; geomean gain over Default %.3f, left %.3f\n",
           close, COUNT, exp(gain / COUNT), exp(loss / COUNT));
}

int main(int argc, char **argv) {
    static const TorCheckTest tests[] = {{"any_choice", any_choice}},
                              benches[] = {{"picks", picks}};
    return tor_check_main(argc, argv, tests, TOR_COUNT_OF(tests), benches, TOR_COUNT_OF(benches));
}
