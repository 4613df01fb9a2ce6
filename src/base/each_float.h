// Template: includes the file that TEMPLATE names once for each float type, with
//   T        the type in memory
//   WIDE     the type to compute in
//   LOAD(x), STORE(x)   between the two
//   NAME     f32, f64, f16 or bf16; FN(x) is x_NAME, for what the template defines
//   SYMBOL   FAMILY##_<type>, for the kernel
// defined, and undefines all of these, TEMPLATE and FAMILY. The includer has base/simd.h.

#define FN(name) TOR_PASTE(TOR_PASTE(name, _), NAME)

#define T float
#define WIDE float
#define LOAD(x) (x)
#define STORE(x) (x)
#define NAME f32
#define SYMBOL TOR_PASTE(FAMILY, _f32)
#include TEMPLATE
#undef T
#undef WIDE
#undef NAME
#undef SYMBOL

#define T double
#define WIDE double
#define NAME f64
#define SYMBOL TOR_PASTE(FAMILY, _f64)
#include TEMPLATE
#undef T
#undef WIDE
#undef LOAD
#undef STORE
#undef NAME
#undef SYMBOL

#define T uint16_t
#define WIDE float
#define LOAD(x) tor_f16_to_f32(x)
#define STORE(x) tor_f32_to_f16(x)
#define NAME f16
#define SYMBOL TOR_PASTE(FAMILY, _f16)
#include TEMPLATE
#undef LOAD
#undef STORE
#undef NAME
#undef SYMBOL

#define LOAD(x) tor_bf16_to_f32(x)
#define STORE(x) tor_f32_to_bf16(x)
#define NAME bf16
#define SYMBOL TOR_PASTE(FAMILY, _bf16)
#include TEMPLATE
#undef T
#undef WIDE
#undef LOAD
#undef STORE
#undef NAME
#undef SYMBOL

#undef FN
#undef TEMPLATE
#undef FAMILY
