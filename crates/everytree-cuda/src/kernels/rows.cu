// Rows that fit into shared memory: a thread block takes one row after the other, builds its rates, eliminates all vertices, brings
// them back, and adds the derivatives to its own table of sums. One vertex at a time; the same mathematics as spanning/kernel
// has for blocks of one. NC is how many columns a thread of a warp looks after.

#define ELIMINATE 1  // else the factors are read from `kept`
#define KEEP 2       // the factors are written to `kept`
#define BACKWARD 4  // derivatives
#define SUM 8        // add them to the sums, else write them to `derivatives`

// The logarithm of the product of the pivots, which lie on the diagonal; NaN where one of them is not to be trusted. One warp.
__device__ double log_of_pivots(const REAL *q, int ld, int size, int lane) {
    double sum = 0;
    bool trusted = true;
    for (int k = 1 + lane; k < size; k += 32) {
        REAL pivot = q[k * ld + k];
        trusted = trusted && pivot >= TINY && pivot <= HUGE_;
        sum += log((double)pivot);
    }
    for (int other = 16; other > 0; other >>= 1) sum += __shfl_xor_sync(ALL, sum, other);
    return __all_sync(ALL, trusted) ? sum : nan("");
}

// May these derivatives be handed on? Time at the root is the largest of them. One warp.
__device__ bool trusted_times(const REAL *g, int ld, int size, int lane) {
    bool fine = true;
    for (int k = 1 + lane; k < size; k += 32) fine = fine && g[k * ld] <= HUGE_;
    return __all_sync(ALL, fine);
}

extern __shared__ double shared_memory[];

template <int NC> __device__ void undirected(
    REAL *kept, REAL *derivatives, double *logs, u8 *trusted, REAL *sums, const REAL *weights, const REAL *rates, const u16 *states, const int *places,
    const REAL *prior, REAL *marginals, int prior_row, int n, int S, int rows, int stage) {
    int ld = n | 1;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    // Mean resistances, and sums over the vertices that a warp has.
    REAL *q = (REAL *)shared_memory, *x = q + n * ld, *parts = x + n;
    u16 *own = (u16 *)(parts + warps * n);
    REAL *table = sums + (long long)blockIdx.x * S * S;
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        bool is_prior = row == prior_row;
        REAL *factors = kept + (long long)row * n * n;
        if (!is_prior) {
            const u16 *codes = states_of(states, places, row, n);
            for (int v = threadIdx.x; v < n; v += blockDim.x) own[v] = codes[v];
        }
        __syncthreads();
        if (stage & ELIMINATE) {
            for (int i = warp; i < n; i += warps) {
                const REAL *line = is_prior ? prior + (long long)i * n : rates + (long long)own[i] * S;
                for (int j = lane; j < i; j += 32) q[i * ld + j] = line[is_prior ? j : own[j]];
            }
            __syncthreads();
            for (int k = n - 1; k > 0; k--) {
                const REAL *of_k = q + k * ld;
                REAL out[NC], sum = 0;
#pragma unroll
                for (int c = 0; c < NC; c++) {
                    int j = lane + 32 * c;
                    out[c] = j < k ? of_k[j] : (REAL)0;
                    sum += out[c];
                }
                REAL pivot = warp_sum(sum), inverse = (REAL)1 / pivot;
                for (int i = 1 + warp; i < k; i += warps) {
                    REAL in = of_k[i] * inverse, *to = q + i * ld;
#pragma unroll
                    for (int c = 0; c < NC; c++)
                        if (lane + 32 * c < i) to[lane + 32 * c] += in * out[c];
                }
                if (threadIdx.x == 0) q[k * ld + k] = pivot;
                __syncthreads();
            }
            if (warp == 0) {
                double log = log_of_pivots(q, ld, n, lane);
                if (lane == 0) logs[row] = log;
            }
            if (stage & KEEP)
                for (int i = warp; i < n; i += warps)
                    for (int j = lane; j <= i; j += 32) factors[i * n + j] = q[i * ld + j];
        } else {
            for (int i = warp; i < n; i += warps)
                for (int j = lane; j <= i; j += 32) q[i * ld + j] = factors[i * n + j];
            __syncthreads();
        }
        if (stage & BACKWARD) {
            // Effective resistances, in the place of the factors; see undirected.rs.
            if (threadIdx.x == 0) q[0] = 0;
            for (int k = 1; k < n; k++) {
                REAL inverse = (REAL)1 / q[k * ld + k], step[NC], part[NC];
#pragma unroll
                for (int c = 0; c < NC; c++) {
                    int j = lane + 32 * c;
                    step[c] = j < k ? q[k * ld + j] * inverse : (REAL)0;
                    part[c] = 0;
                }
                for (int i = warp; i < k; i += warps) {
                    REAL to_i = q[k * ld + i] * inverse;
#pragma unroll
                    for (int c = 0; c < NC; c++)
                        if (lane + 32 * c < k) part[c] += to_i * q[i * ld + lane + 32 * c];
                }
#pragma unroll
                for (int c = 0; c < NC; c++)
                    if (lane + 32 * c < k) parts[warp * n + lane + 32 * c] = part[c];
                __syncthreads();
                for (int j = threadIdx.x; j < k; j += blockDim.x) {
                    REAL sum = 0;
                    for (int other = 0; other < warps; other++) sum += parts[other * n + j];
                    x[j] = sum;
                }
                __syncthreads();
                REAL twice = 0;
#pragma unroll
                for (int c = 0; c < NC; c++)
                    if (lane + 32 * c < k) twice += step[c] * x[lane + 32 * c];
                REAL t = inverse - (REAL)0.5 * warp_sum(twice);
                for (int j = threadIdx.x; j < k; j += blockDim.x) {
                    REAL r = x[j] + t;
                    q[k * ld + j] = r;
                    q[j * ld + k] = r;
                }
                if (threadIdx.x == 0) q[k * ld + k] = 0;
                __syncthreads();
            }
            bool fine = trusted_times(q, ld, n, lane) && !isnan(logs[row]);
            if (threadIdx.x == 0) trusted[row] = fine;
            if (is_prior) {
                for (int i = warp; i < n; i += warps)
                    for (int j = lane; j < i; j += 32) marginals[i * n + j] = q[i * ld + j] * prior[i * n + j];
            } else if (stage & SUM) {
                REAL weight = weights[row];
                if (fine && weight != 0)
                    for (int i = warp; i < n; i += warps) {
                        REAL *line = table + (long long)own[i] * S;
                        for (int j = lane; j < i; j += 32) line[own[j]] += weight * q[i * ld + j];
                    }
            } else {
                for (int i = warp; i < n; i += warps)
                    for (int j = lane; j < i; j += 32) derivatives[(long long)row * n * n + i * n + j] = q[i * ld + j];
            }
        }
        __syncthreads();
    }
}

template <int NC> __device__ void directed(
    REAL *kept, REAL *derivatives, double *logs, u8 *trusted, REAL *sums, const REAL *weights, const REAL *rates, const u16 *states, const int *places,
    const REAL *prior, REAL *marginals, int prior_row, int n, int S, int rows, int stage) {
    int size = n + 1, ld = size | 1;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    // Times after leaving a vertex, those times the rate into it, and sums over the vertices that a warp has.
    REAL *q = (REAL *)shared_memory, *x = q + size * ld, *into = x + size, *parts = into + size;
    u16 *own = (u16 *)(parts + warps * size);
    REAL *table = sums + (long long)blockIdx.x * S * S;
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        bool is_prior = row == prior_row;
        REAL *factors = kept + (long long)row * size * size;
        if (!is_prior) {
            const u16 *codes = states_of(states, places, row, n);
            for (int v = threadIdx.x; v < n; v += blockDim.x) own[v] = codes[v];
        }
        __syncthreads();
        if (stage & ELIMINATE) {
            for (int i = 1 + warp; i < size; i += warps) {
                const REAL *line = is_prior ? prior + (long long)(i - 1) * n : rates + (long long)own[i - 1] * S;
                for (int j = lane; j < size; j += 32) {
                    // The root's rate lies on the diagonal of the tables.
                    int v = j == 0 ? i - 1 : j - 1;
                    q[i * ld + j] = j == i ? (REAL)0 : line[is_prior ? v : own[v]];
                }
            }
            __syncthreads();
            for (int k = size - 1; k > 0; k--) {
                const REAL *of_k = q + k * ld;
                REAL out[NC], sum = 0;
#pragma unroll
                for (int c = 0; c < NC; c++) {
                    int j = lane + 32 * c;
                    out[c] = j < k ? of_k[j] : (REAL)0;
                    sum += out[c];
                }
                REAL pivot = warp_sum(sum), inverse = (REAL)1 / pivot;
                // What comes back to where it was is of no consequence: nobody reads the diagonal but for pivots.
                for (int i = 1 + warp; i < k; i += warps) {
                    REAL in = q[i * ld + k] * inverse, *to = q + i * ld;
#pragma unroll
                    for (int c = 0; c < NC; c++)
                        if (lane + 32 * c < k) to[lane + 32 * c] += in * out[c];
                }
                if (threadIdx.x == 0) q[k * ld + k] = pivot;
                __syncthreads();
            }
            if (warp == 0) {
                double log = log_of_pivots(q, ld, size, lane);
                if (lane == 0) logs[row] = log;
            }
            if (stage & KEEP)
                for (int i = 1 + warp; i < size; i += warps)
                    for (int j = lane; j < size; j += 32) factors[i * size + j] = q[i * ld + j];
        } else {
            for (int i = 1 + warp; i < size; i += warps)
                for (int j = lane; j < size; j += 32) q[i * ld + j] = factors[i * size + j];
            __syncthreads();
        }
        if (stage & BACKWARD) {
            // Derivatives in the place of the factors: by the rate from i to j of row i, column j.
            for (int k = 1; k < size; k++) {
                REAL inverse = (REAL)1 / q[k * ld + k], step[NC], part[NC];
#pragma unroll
                for (int c = 0; c < NC; c++) {
                    int j = lane + 32 * c;
                    step[c] = j < k ? q[k * ld + j] * inverse : (REAL)0;
                    part[c] = 0;
                }
                for (int i = 1 + warp; i < k; i += warps) {
                    REAL in = q[i * ld + k] * inverse, sum = 0;
#pragma unroll
                    for (int c = 0; c < NC; c++)
                        if (lane + 32 * c < k) {
                            REAL g = q[i * ld + lane + 32 * c];
                            sum += step[c] * g;
                            part[c] += in * g;
                        }
                    sum = warp_sum(sum);
                    if (lane == 0) {
                        x[i] = sum;
                        into[i] = in * sum;
                    }
                }
#pragma unroll
                for (int c = 0; c < NC; c++)
                    if (lane + 32 * c < k) parts[warp * size + lane + 32 * c] = part[c];
                __syncthreads();
                REAL less = 0;
                for (int i = 1 + lane; i < k; i += 32) less += into[i];
                REAL t = inverse - warp_sum(less);
                for (int j = threadIdx.x; j < k; j += blockDim.x) {
                    REAL y = t;
                    for (int other = 0; other < warps; other++) y += parts[other * size + j];
                    q[k * ld + j] = y;
                    if (j > 0) q[j * ld + k] = x[j];
                }
                if (threadIdx.x == 0) q[k * ld + k] = 0;
                __syncthreads();
            }
            bool fine = trusted_times(q, ld, size, lane) && !isnan(logs[row]);
            if (threadIdx.x == 0) trusted[row] = fine;
            if (is_prior) {
                for (int v = warp; v < n; v += warps)
                    for (int u = lane; u < n; u += 32)
                        marginals[v * n + u] = q[(v + 1) * ld + (u == v ? 0 : u + 1)] * prior[v * n + u];
            } else if (stage & SUM) {
                REAL weight = weights[row];
                if (fine && weight != 0)
                    for (int v = warp; v < n; v += warps) {
                        REAL *line = table + (long long)own[v] * S;
                        for (int u = lane; u < n; u += 32)
                            line[own[u]] += weight * q[(v + 1) * ld + (u == v ? 0 : u + 1)];
                    }
            } else {
                for (int i = 1 + warp; i < size; i += warps)
                    for (int j = lane; j < size; j += 32) derivatives[(long long)row * size * size + i * size + j] = q[i * ld + j];
            }
        }
        __syncthreads();
    }
}

#define ROWS(NAME, KIND, NC)                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256) NAME(                                                                   \
        REAL *kept, REAL *derivatives, double *logs, u8 *trusted, REAL *sums, const REAL *weights, const REAL *rates, const u16 *states,         \
        const int *places, const REAL *prior, REAL *marginals, int prior_row, int n, int S, int rows, int stage) {            \
        KIND<NC>(                                                                                                             \
            kept, derivatives, logs, trusted, sums, weights, rates, states, places, prior, marginals, prior_row, n, S, rows, stage);       \
    }

ROWS(undirected_1, undirected, 1)
ROWS(undirected_4, undirected, 4)
ROWS(directed_1, directed, 1)
ROWS(directed_4, directed, 4)
