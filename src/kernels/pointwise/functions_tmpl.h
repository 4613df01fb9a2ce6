// Tile functions of one type from the rows in ROWS (functions_*.inc), as loops for the
// auto-vectoriser. Wants: S (suffix), T, ROWS; for integers U, UL, W, IS_SIGNED. Undefines them.
#define NAME(name) TOR_PASTE(TOR_PASTE(name, _), S)

#ifdef U
// Division by zero gives 0; the least number divided by -1 wraps.
static inline T NAME(div_)(T x, T y) {
    if (y == 0) return 0;
    if (IS_SIGNED && y == (T)-1) return (T)((U)0 - (U)x);
    return (T)(x / y);
}
static inline T NAME(mod_)(T x, T y) {
    return y == 0 || (IS_SIGNED && y == (T)-1) ? 0 : (T)(x % y);
}
static inline T NAME(floor_)(T x, T y) {
    return (T)((U)NAME(div_)(x, y) - (U)(NAME(mod_)(x, y) != 0 && (x < 0) != (y < 0)));
}
static inline T NAME(remainder_)(T x, T y) {
    T rest = NAME(mod_)(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? (T)((U)rest + (U)y) : rest;
}
static inline T NAME(pow_)(T x, T y) {
    if (y < 0) return x == 1 ? 1 : x == (T)-1 ? ((U)y & 1 ? (T)-1 : 1) : 0;
    UL power = 1, base = (UL)(U)x;
    for (U e = (U)y; e; e = (U)(e >> 1), base *= base) power *= e & 1 ? base : 1;
    return (T)power;
}
#define int_div NAME(div_)
#define int_fmod NAME(mod_)
#define int_floor NAME(floor_)
#define int_remainder NAME(remainder_)
#define int_pow NAME(pow_)
#endif

#define LOOP(name, X, R, READ, expr)                                                               \
    static void NAME(name)(void *dst, const void *a_, const void *b_, const void *c_, int64_t n) { \
        R *d = dst;                                                                                \
        const X *a = a_;                                                                           \
        const T *b = b_, *c = c_;                                                                  \
        (void)b;                                                                                   \
        (void)c;                                                                                   \
        TOR_IVDEP for (int64_t i = 0; i < n; i++) {                                                \
            READ;                                                                                  \
            d[i] = (R)(expr);                                                                      \
        }                                                                                          \
    }
#define READ_1 const T x = a[i]
#define READ_2 const T x = a[i], y = b[i]
#define READ_3 const T x = a[i], y = b[i], z = c[i]
#define READ_4              \
    const uint8_t x = a[i]; \
    const T y = b[i], z = c[i]
#define TYPE_1 T
#define TYPE_2 T
#define TYPE_3 T
#define TYPE_4 uint8_t
#define FN_s(name, arity, expr) LOOP(name, TYPE_##arity, T, READ_##arity, expr)
#define FN_b(name, arity, expr) LOOP(name, TYPE_##arity, uint8_t, READ_##arity, expr)
#define FN(name, arity, result, expr) FN_##result(name, arity, expr)
#include ROWS
#undef FN
#undef FN_s
#undef FN_b
#undef LOOP
#undef READ_1
#undef READ_2
#undef READ_3
#undef READ_4
#undef TYPE_1
#undef TYPE_2
#undef TYPE_3
#undef TYPE_4

#undef NAME
#undef int_div
#undef int_fmod
#undef int_floor
#undef int_remainder
#undef int_pow
#undef S
#undef T
#undef U
#undef UL
#undef W
#undef IS_SIGNED
