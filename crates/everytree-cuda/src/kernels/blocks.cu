// Rows that do not fit into shared memory: the small dense part of a blocked elimination, one thread block a row; everything large is
// a batched matrix product. Blocks of B indices go from the last to the first (eliminate.cu), and the backward pass goes from the first to the last
// (backward.cu); here is what both begin with.
// Matrices have P numbers a row, a multiple of B. The undirected kind has rates below the diagonal only.

// Rates of every row, by its states. q is rows × P × P; a thread block of 32 × 8 has a square of B × B.
extern "C" __global__ void fill_rates(
    REAL *q, const REAL *rates, const u16 *states, const int *places, const REAL *prior, int prior_row, int n, int size, int P, int S,
    int directed) {
    // Above the diagonal nobody looks.
    if (!directed && blockIdx.x > blockIdx.y) return;
    long long row = blockIdx.z;
    int j = blockIdx.x * B + threadIdx.x;
    bool is_prior = row == prior_row;
    const u16 *own = is_prior ? states : states_of(states, places, row, n);
    REAL *to = q + row * P * P;
    // The variable that it goes to; the root's rate lies on the diagonal of the tables.
    int u = directed ? j - 1 : j;
    int column = j < size && u >= 0 ? (is_prior ? u : own[u]) : 0;
#pragma unroll
    for (int part = 0; part < 4; part++) {
        int i = blockIdx.y * B + part * 8 + threadIdx.y;
        int v = directed ? i - 1 : i;
        bool any = i < size && j < size && (directed ? i > 0 && i != j : j < i);
        REAL rate = 0;
        if (any) {
            int line = is_prior ? v : own[v];
            int at = directed && j == 0 ? line : column;
            rate = is_prior ? prior[(long long)line * n + at] : rates[(long long)line * S + at];
        }
        to[(long long)i * P + j] = rate;
    }
}

// What goes one vertex after the other is done by eight warps, four lines of a block each, in registers. They wait for each other alone.
#define FEW 8
#define EACH (B / FEW)
__device__ __forceinline__ void few_together() { asm volatile("bar.sync 1, 256;" ::: "memory"); }

// As many numbers as are loaded at once.
#define PACK ((int)(16 / sizeof(REAL)))
struct __align__(16) Pack {
    REAL numbers[PACK];
};

// Those of the lines of a warp.
struct Four {
    Pack packs[EACH / PACK];
    __device__ __forceinline__ REAL &operator[](int n) { return packs[n / PACK].numbers[n % PACK]; }
};
__device__ __forceinline__ Four load_four(const REAL *from) { return *(const Four *)from; }
__device__ __forceinline__ void store_four(REAL *to, Four four) { *(Four *)to = four; }

// Numbers of a line in shared memory: the next one begins four banks further on, so that 32 threads read and write fours of as many
// lines without waiting for each other.
#define LINE (B + PACK)

// The sums of COUNT numbers over the threads of a warp, in fewer steps than one after the other: thread j has that of number j % COUNT.
template <int COUNT> __device__ __forceinline__ REAL sums_of(REAL *x) {
#pragma unroll
    for (int mask = 1; mask < COUNT; mask <<= 1) {
        bool odd = threadIdx.x & mask;
#pragma unroll
        for (int n = 0; n < COUNT / (2 * mask); n++) {
            REAL keep = odd ? x[2 * n + 1] : x[2 * n], give = odd ? x[2 * n] : x[2 * n + 1];
            x[n] = keep + __shfl_xor_sync(ALL, give, mask);
        }
    }
#pragma unroll
    for (int mask = COUNT; mask < 32; mask <<= 1) x[0] += __shfl_xor_sync(ALL, x[0], mask);
    return x[0];
}

// 512 bytes: what 32 threads load at once.
#define AT_ONCE (512 / (int)sizeof(REAL))
