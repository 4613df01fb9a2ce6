/// Convolution family: y = conv(x, w) + bias, through an epilogue, in 1 to 3 spatial dims.
///
/// x and y are logically [b, c, d, h, w]; 1-d and 2-d convolutions have leading spatial sizes of 1
/// (kernel, stride, dilation 1, padding 0 there). Strides are in elements and arbitrary; the fast
/// case is a channel stride of 1 (channels last). Other layouts of x are packed on the way in,
/// other layouts of y scattered on the way out.
///
/// Padding is the low side's; what an output position reads beyond the high end is zero too, so the
/// caller's output sizes say all there is about ceil, floor and asymmetric padding.
/// Transposed: y is the larger side; padding and dilation as in torch.nn.ConvTranspose; output
/// padding is in the output size.
///
/// Kernels (kernels.inc), chosen by weight shape alone, so that a packed weight serves every input:
///
/// - direct: depthwise (one input channel a group, more than one group) and groups of 2, 4, 8 or 16
///   channels in and out, no wider than a vector. Reads x in place, lanes over channels.
/// - depthwise: of these, images with one input and output channel a group, the usual kernels and
///   strides, channels last. Reads the same packed weight as direct.
/// - igemm: the rest. Microkernels read A straight from x, or from a zero-padded channels-last
/// patch
///   of it. This is Dukhan 2019, "The Indirect Convolution Algorithm", with the indirection buffer
///   factored into pixel pointers plus tap offsets, which padding by copy makes possible.
/// - winograd: what `winograd` asks for, in weights and here alike: 3x3 kernels with stride 1 over
///   one group, four to a quarter of the products. See winograd.c.
///
/// Numeric policy: float32 products and sums, fused where the level has FMA. igemm adds, in order,
/// chains of at most 384 products, taps outer and channels inner, the first from the bias on (two
/// or four interleaved ones for tiles of up to three pixels). An epilogue's addend joins after the
/// first chain where register tiles apply the epilogue. direct and depthwise keep one chain from
/// the bias on. The order depends on shape and kernel only. NaN and infinity propagate; where igemm
/// pads, zeros multiply, so an infinite weight at the border gives NaN. winograd mixes the inputs
/// of a 6x6 patch: NaN or infinity in one makes all 4x4 outputs of the patch NaN, and a weight that
/// is not finite all outputs of its channel; its error is up to about three times igemm's, relative
/// to the largest input of the patch (whole nets: 0.6 to 1.4 times eager's).
#ifndef TOR_KERNELS_CONV_CONTRACT_H
#define TOR_KERNELS_CONV_CONTRACT_H

#include "base/pool.h"
#include "kernels/gemm/contract.h"
#include "kernels/pointwise/contract.h"

struct TorConvRow;

/// Call tor_conv_bind() after the first part is filled and clear. Data pointers may change at each
/// run.
typedef struct {
    int64_t batch, in_channels, out_channels, groups;
    int64_t in_size[3], out_size[3];  ///< d, h, w
    int64_t kernel[3], stride[3], padding[3], dilation[3];
    bool transposed;
    bool winograd;                     ///< tor_conv_winograd_takes() it, and `packed` is for it
    int64_t x_stride[5], y_stride[5];  ///< b, c, d, h, w, elements
    /// NULL: y gets the sums. Else the epilogue's outputs get them and y, y_stride are not used;
    /// its rows are output pixels ((b * D + d) * H + h) * W + w, its cols output channels, its
    /// batch 0. The memory of output 0 may hold sums meanwhile, so no other input may overlap it,
    /// unless element by element.
    const TorEpilogue *epilogue;

    const float *x;
    const void *packed;  ///< by tor_conv_pack_run(), same weight shape
    const float *bias;   ///< [out_channels] or NULL
    float *y;

    /// Wishes, cut down to what the shape allows; 0 lets bind choose. `pixels` is of igemm and
    /// winograd (its tiles), `k_block` of igemm alone.
    struct {
        int64_t pixels, n_block, k_block;
    } wish;

    int64_t items;                 ///< out: for tor_team_run()
    size_t scratch_bytes;          ///< out: a thread
    const struct TorConvRow *row;  ///< out: row->name for logs and the tuner

    /// Private: the problem as the kernels see it, one for every phase of a transposed convolution.
    struct {
        int64_t in_size[3], out_size[3], stride[3];       ///< after unit-kernel dims are merged
        int64_t x_stride[5], y_stride[5], row_stride[4];  ///< row_stride: epilogue rows, b, d, h, w
        int64_t batch, tile[3], tiles[3], k_block, phases;
        int64_t n_block, n_blocks, n_join;  ///< igemm: n_block is in panels, direct: in channels
        int64_t patch_size[3], patch_stride[3], pixels;
        int64_t ring;  ///< depthwise: x has this many lines, and line i is the i % ring-th; 0: all
        bool copy;     ///< through a patch, not straight from x
        bool merged_taps;  ///< taps along w and channels are one run
        bool by_pixels;    ///< igemm: all panels for some pixels, then the next pixels
        bool finishes;     ///< the epilogue is `finish`, which register tiles apply
        TorRegisterEpilogue finish;
        bool silu;  ///< which is SiLU, of a sum at most: some tiles have copies for it
        const TorGemmKernel *product;      ///< winograd: the kernel of its products
        int64_t input_step, product_step;  ///< winograd: floats from point to point
        size_t patch_at, acc_at, seg_at, product_at, epilogue_at;  ///< offsets in scratch
    } plan;
} TorConvArgs;

/// Whether a row takes this shape; else *reason is a static string.
bool tor_conv_supported(const TorConvArgs *args, const char **reason);
/// Whether the winograd row takes this shape. It asks for kernel, stride, dilation, groups and
/// channels; sizes do not matter.
bool tor_conv_winograd_takes(const TorConvArgs *args);
/// Chooses row, tiles, items and scratch. No allocation, less than 1 us. The epilogue must be bound
/// already (its pointers may come later).
void tor_conv_bind(TorConvArgs *args);
/// A TorRangeFn.
void tor_conv_run(const void *args, int64_t begin, int64_t end, void *scratch);

/// A weight is logically [groups][o / groups][c / groups][kd][kh][kw].
/// torch's conv weight [o, c / g, k...]: group_stride = o / g * out_stride.
/// torch's transposed weight [c, o / g, k...]: out_stride = its dim 1's, in_stride = its dim 0's,
/// group_stride = c / g * in_stride.
typedef struct {
    int64_t out_channels, in_channels, groups, kernel[3];
    bool winograd;
    int64_t group_stride, out_stride, in_stride, kernel_stride[3];

    const float *weight;
    void *packed;  ///< aligned to TOR_CACHE_LINE, tor_conv_packed_bytes() long

    int64_t items;         ///< out
    size_t scratch_bytes;  ///< out: 0
    const struct TorConvRow *row;
} TorConvPackArgs;

/// A property of weight shape and instruction set: igemm has [group][o panel][tap][c][o of panel],
/// direct has [o panel of NR][tap][c][NR]; channels missing in a panel's last vector are zeros.
/// winograd has [o panel][point][c][o of panel], see winograd_pack.c.
size_t tor_conv_packed_bytes(int64_t out_channels, int64_t in_channels, int64_t groups,
                             const int64_t kernel[3], bool winograd);
void tor_conv_pack_bind(TorConvPackArgs *args);
/// A TorRangeFn.
void tor_conv_pack_run(const void *args, int64_t begin, int64_t end, void *scratch);

enum { TOR_CONV_BANDS = 3 };  ///< convolutions that can be computed together

/// Convolutions of images that read each the one before: one is depthwise, and those next to it
/// have kernels of one element. They are computed by bands of the last one's lines: for each band,
/// what it needs of the first, then of the next. So what lies between stays in L2: a thread has the
/// lines of a band of it in scratch, and of its last band it keeps those that the next one needs as
/// well. The order of sums is that of the kernels and does not depend on the bands.
///
/// Call tor_conv_bands_bind() after `count` and the first parts of `conv` are filled, as for
/// tor_conv_bind(), and the rest is clear. y_stride, x_stride and an epilogue's strides of what
/// lies between are those of a dense result, channels last; its pointers are not used.
typedef struct {
    int count;  ///< 2 to TOR_CONV_BANDS
    TorConvArgs conv[TOR_CONV_BANDS];

    int64_t items;         ///< out: bands of all images
    size_t scratch_bytes;  ///< out: a thread

    /// Private.
    struct {
        TorConvArgs part[TOR_CONV_BANDS];  ///< of one image; the most lines that a band needs
        int64_t lines, bands;              ///< of the last one in a band; bands of an image
        int64_t room[TOR_CONV_BANDS];      ///< lines that each needs in a band at most
        size_t ring_at[TOR_CONV_BANDS], scratch_at;
    } plan;
} TorConvBandsArgs;

/// Whether these convolutions can be computed by bands: a matter of channels, kernels, strides,
/// padding and dilation.
bool tor_conv_bands_supported(const TorConvBandsArgs *args);
/// Whether sizes are such that it pays.
bool tor_conv_bands_pay(const TorConvBandsArgs *args);
void tor_conv_bands_bind(TorConvBandsArgs *args);
/// A TorRangeFn.
void tor_conv_bands_run(const void *args, int64_t begin, int64_t end, void *scratch);

/// One kernel: kernels.inc has a line for each.
typedef struct TorConvRow {
    const char *name;
    uint32_t features;  ///< TOR_CPU_ bits that it needs
    bool direct;        ///< else igemm; decides the packed format with nr and lanes
    int mr, nr, lanes;  ///< microkernel tile: pixels, channels; channels of a vector
    TorRangeFn run;
} TorConvRow;

/// All rows of this build, best first, for the tests and the tuner.
const TorConvRow *tor_conv_rows(int *count);

// Other types than float32 (those of tor_gemm_takes()): the gemm family on gathered pixels. No
// epilogue, and channels of y have stride 1; numeric policy of tor_gemm_typed_run().

/// Fills and binds `gemm`, which is clear, for the first part of `args`, which it borrows. Run it
/// by tor_gemm_typed_run() with args->x and gemm's b (the packed weight), bias and c (y) set.
void tor_conv_typed_bind(const TorConvArgs *args, TorGemmArgs *gemm, TorDtype dtype);
/// The packed weight is [group][tap][c][o], in `dtype`.
size_t tor_conv_typed_packed_bytes(const TorConvPackArgs *args, TorDtype dtype);
/// @return what to run over args->items
TorRangeFn tor_conv_typed_pack_bind(TorConvPackArgs *args, TorDtype dtype);

/// The oracle: sums in long double, one rounding at the end (before the epilogue); integers wrap.
/// x, weight, bias and y are of `dtype`. Needs no bind, and reads the weight as it is, not packed.
void tor_conv_run_ref(const TorConvArgs *args, const TorConvPackArgs *weight, TorDtype dtype);

#endif
