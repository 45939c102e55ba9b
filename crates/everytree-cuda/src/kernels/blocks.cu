// Rows that do not fit into shared memory: the small dense part of a blocked elimination, one thread block a row; everything large is
// a batched matrix product. Blocks of B indices go from the last to the first, and come back from the first to the last.
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

// The first eight warps wait for each other: what goes one vertex after the other is theirs, four rows each, in registers. The others
// help with what goes at once.
#define FEW 8
#define EACH (B / FEW)
__device__ __forceinline__ void few_together() { asm volatile("bar.sync 1, 256;" ::: "memory"); }

// As many numbers as are loaded at once.
#define PACK ((int)(16 / sizeof(REAL)))
struct __align__(16) Pack {
    REAL numbers[PACK];
};

// Sum of rates to what lies outside, one warp a vertex; several loads at once. Rows begin at multiples of B, and so does a block.
__device__ REAL sum_outside(const REAL *q, int start, int low, int high, int P) {
    int i = threadIdx.y, j = threadIdx.x;
    REAL sums[PACK] = {};
    if (i >= low && i < high) {
        const REAL *row = q + (long long)(start + i) * P;
        const Pack *packs = (const Pack *)row;
        if (start == 0 && j == 0) sums[0] = row[0];
#pragma unroll 8
        for (int c = j; c < start / PACK; c += B) {
            Pack pack = packs[c];
            for (int part = 0; part < PACK; part++) sums[part] += pack.numbers[part];
        }
    }
    REAL sum = sums[0];
    for (int part = 1; part < PACK; part++) sum += sums[part];
    return warp_sum(sum);
}

// Eliminates the vertices of one block: pivots, their reciprocals, green; up and down stay in the block's own square of q. What coming
// back needs is put aside, too: both triangular inverses, and the probabilities of leaving straight away. Names as in block.rs.
extern "C" __global__ void __launch_bounds__(1024) eliminate_block(
    REAL *all_q, REAL *pivots, REAL *inverses, REAL *greens, REAL *up_inverses, REAL *down_inverses, REAL *exits, int start, int low,
    int high, int P, int directed) {
    __shared__ REAL rates[B][B + 1], up[B][B + 1], down[B][B + 1], up_inverse[B][B + 1], down_inverse[B][B + 1];
    // down_inverse times the reciprocals of the pivots, in the place of rates that nobody needs any more.
    REAL(*scaled)[B + 1] = rates;
    __shared__ REAL outside[B], inverse[B], turn[2][B], turn_outside[2], turn_down[2][B];
    long long row = blockIdx.x;
    REAL *q = all_q + row * P * P;
    int i = threadIdx.y, j = threadIdx.x;
    bool inside = i >= low && i < high && j >= low && j < high;
    REAL rate = inside && i != j && (directed || j < i) ? q[(long long)(start + i) * P + start + j] : (REAL)0;
    if (directed) {
        rates[i][j] = rate;
    } else {
        if (j <= i) rates[i][j] = rate;
        if (j < i) rates[j][i] = rate;
    }
    up[i][j] = 0;
    down[i][j] = 0;
    REAL sum = sum_outside(q, start, low, high, P);
    if (j == 0) outside[i] = sum;
    if (i == 0) inverse[j] = 0;
    __syncthreads();
    if (i < FEW) {
        REAL own[EACH], out_of[EACH];
        for (int r = 0; r < EACH; r++) {
            own[r] = rates[i + FEW * r][j];
            out_of[r] = outside[i + FEW * r];
        }
        if (i == low % FEW) {
            turn[low & 1][j] = own[low / FEW];
            if (j == 0) turn_outside[low & 1] = out_of[low / FEW];
        }
        for (int k = low; k < high; k++) {
            few_together();
            // Every warp for itself: the same sum in the same order.
            REAL rate = j > k && j < high ? turn[k & 1][j] : (REAL)0;
            REAL away = turn_outside[k & 1];
            REAL pivot = away + warp_sum(rate);
            REAL over = (REAL)1 / pivot;
            REAL step = rate * over, out = away * over;
#pragma unroll
            for (int r = 0; r < EACH; r++) {
                int line = i + FEW * r;
                REAL in = __shfl_sync(ALL, own[r], k);
                if (line > k && line < high) {
                    own[r] += in * step;
                    out_of[r] += in * out;
                    if (j == 0) down[line][k] = in * over;
                    if (line == k + 1) {
                        turn[line & 1][j] = own[r];
                        if (j == 0) turn_outside[line & 1] = out_of[r];
                    }
                } else if (line == k) {
                    up[k][j] = step;
                    if (j == 0) {
                        inverse[k] = over;
                        pivots[row * P + start + k] = pivot;
                    }
                }
            }
        }
        few_together();
        // (1 − up)⁻¹ and (1 − down)⁻¹: a row that is done is added to all that need it.
        REAL above[EACH], below[EACH];
        for (int r = 0; r < EACH; r++) {
            int line = i + FEW * r;
            above[r] = below[r] = line == j && line >= low && line < high ? (REAL)1 : (REAL)0;
            if (line == high - 1) turn[0][j] = above[r];
            if (line == low) turn_down[0][j] = below[r];
        }
        for (int step = 0; step < high - low; step++) {
            few_together();
            int last = high - 1 - step, first = low + step;
            REAL of_last = turn[step & 1][j], of_first = turn_down[step & 1][j];
#pragma unroll
            for (int r = 0; r < EACH; r++) {
                int line = i + FEW * r;
                if (line < last) above[r] += up[line][last] * of_last;
                if (line > first) below[r] += down[line][first] * of_first;
                if (line == last - 1) turn[(step + 1) & 1][j] = above[r];
                if (line == first + 1) turn_down[(step + 1) & 1][j] = below[r];
            }
        }
        for (int r = 0; r < EACH; r++) {
            up_inverse[i + FEW * r][j] = above[r];
            down_inverse[i + FEW * r][j] = below[r];
            scaled[i + FEW * r][j] = inverse[i + FEW * r] * below[r];
        }
    }
    __syncthreads();
    if (inside) q[(long long)(start + i) * P + start + j] = j > i ? up[i][j] : down[i][j];
    if (i == 0) inverses[row * P + start + j] = inverse[j];
    REAL green = 0;
#pragma unroll 8
    for (int l = 0; l < B; l++) green += up_inverse[i][l] * scaled[l][j];
    greens[row * B * B + i * B + j] = green;
    up_inverses[row * B * B + i * B + j] = up_inverse[i][j];
    down_inverses[row * B * B + i * B + j] = down_inverse[i][j];
    REAL part = i >= low && i < high && j >= low && j <= i ? down_inverse[i][j] * outside[j] : (REAL)0;
    REAL total = warp_sum(part);
    if (j == 0) exits[row * B + i] = total * inverse[i];
}

// Products of 32 × 32 numbers over many: z[k][l] = Σ_i a[k][i] b[l][i], or with both transposed. A thread block takes AT_ONCE of the i;
// what it finds is one of the parts that are added up later, in order. 256 threads, four results each. Of several squares of results, the
// rows of b go on from one to the next.
#define AT_ONCE (512 / (int)sizeof(REAL))
#define GROUPS (AT_ONCE / B)
extern "C" __global__ void narrow_products(
    REAL *parts, const REAL *a, const REAL *b, int along, int a_stride, int b_stride, int transposed, int a_matrix,
    int b_matrix) {
    __shared__ REAL left[B][AT_ONCE + 1], right[B][AT_ONCE + 1];
    int first = blockIdx.x * AT_ONCE, count = min(AT_ONCE, along - first);
    const REAL *of_a = a + (long long)blockIdx.y * a_matrix, *of_b = b + (long long)blockIdx.y * b_matrix + (long long)blockIdx.z * B * b_stride;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    // All of it is on its way at once.
    REAL of_left[4 * GROUPS], of_right[4 * GROUPS];
#pragma unroll
    for (int part = 0; part < 4 * GROUPS; part++) {
        int k = transposed ? lane : warp + 8 * (part / GROUPS), i = transposed ? warp + 8 * part : lane + 32 * (part % GROUPS);
        long long at_a = transposed ? (long long)(first + i) * a_stride + k : (long long)k * a_stride + first + i;
        long long at_b = transposed ? (long long)(first + i) * b_stride + k : (long long)k * b_stride + first + i;
        of_left[part] = i < count ? of_a[at_a] : (REAL)0;
        of_right[part] = i < count ? of_b[at_b] : (REAL)0;
    }
#pragma unroll
    for (int part = 0; part < 4 * GROUPS; part++) {
        int k = transposed ? lane : warp + 8 * (part / GROUPS), i = transposed ? warp + 8 * part : lane + 32 * (part % GROUPS);
        left[k][i] = of_left[part];
        right[k][i] = of_right[part];
    }
    __syncthreads();
    // Rows k and k + 16, columns l and l + 16.
    int k = threadIdx.x >> 4, l = threadIdx.x & 15;
    REAL z[4] = {0, 0, 0, 0};
#pragma unroll 8
    for (int i = 0; i < AT_ONCE; i++) {
        REAL a0 = left[k][i], a1 = left[k + 16][i], b0 = right[l][i], b1 = right[l + 16][i];
        z[0] += a0 * b0;
        z[1] += a0 * b1;
        z[2] += a1 * b0;
        z[3] += a1 * b1;
    }
    REAL *to = parts + (((long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * B * B;
    to[k * B + l] = z[0];
    to[k * B + l + 16] = z[1];
    to[(k + 16) * B + l] = z[2];
    to[(k + 16) * B + l + 16] = z[3];
}

// The sum of the parts of one result.
__device__ REAL sum_parts(const REAL *parts, long long row, int count, int place) {
    REAL sum = 0;
#pragma unroll 8
    for (int part = 0; part < count; part++) sum += parts[(row * count + part) * B * B + place];
    return sum;
}

// Adds up the parts of squares of results, one beside the other in the rows that begin at `to`.
extern "C" __global__ void add_narrow(REAL *to, const REAL *parts, int count, int P) {
    int place = threadIdx.y * B + threadIdx.x;
    long long row = blockIdx.x;
    REAL sum = sum_parts(parts + (long long)blockIdx.y * gridDim.x * count * B * B, row, count, place);
    to[row * P * P + (long long)threadIdx.y * P + blockIdx.y * B + threadIdx.x] = sum;
}

// Resistances between the vertices of a block, and the lift of each; see undirected.rs.
extern "C" __global__ void __launch_bounds__(1024) bring_back_undirected(
    const REAL *all_q, REAL *all_r, const REAL *inverses, const REAL *down_inverses, const REAL *exits, const REAL *z_parts,
    REAL *lifts, int start, int low, int high, int P, int parts) {
    __shared__ REAL up[B][B + 1], down[B][B + 1], r[B][B + 1], found[B][B + 1], turn[2][B];
    __shared__ REAL inverse[B], exit_[B], lift[B], own[B];
    long long row = blockIdx.x;
    const REAL *q = all_q + row * P * P;
    int i = threadIdx.y, j = threadIdx.x;
    bool inside = i >= low && i < high && j >= low && j < high;
    bool rest = start > 0;
    up[i][j] = inside && j > i ? q[(long long)(start + i) * P + start + j] : (REAL)0;
    down[i][j] = rest ? down_inverses[row * B * B + i * B + j] : (REAL)0;
    // z, in the place of what comes later.
    found[i][j] = rest ? sum_parts(z_parts, row, parts, i * B + j) : (REAL)0;
    if (i == 0) {
        inverse[j] = inverses[row * P + start + j];
        exit_[j] = exits[row * B + j];
    }
    __syncthreads();
    // What comes from outside: Σ_i u_k[i] y[l][i]
    REAL step = 0;
    if (rest && i >= low && i < high) {
        // Above the diagonal there is nothing.
#pragma unroll 8
        for (int l = 0; l < B; l++) step += down[i][l] * found[l][j];
        step *= inverse[i];
    }
    r[i][j] = step;
    if (i == j) own[i] = step;
    __syncthreads();
    found[i][j] = 0;
    __syncthreads();
    if (i < FEW) {
        REAL known[EACH], steps[EACH], lifted = 0;
        for (int n = 0; n < EACH; n++) {
            known[n] = r[i + FEW * n][j];
            steps[n] = up[i + FEW * n][j];
        }
        if (i == (high - 1) % FEW) turn[(high - 1) & 1][j] = known[(high - 1) / FEW];
        for (int k = high - 1; k >= low; k--) {
            few_together();
            // Every warp finishes row k for itself, and adds it to its own.
            bool later = j > k && j < high;
            REAL steps_k = up[k][j];
            REAL s = later ? turn[k & 1][j] + exit_[k] * lifted : (REAL)0;
            REAL carried = warp_sum(steps_k * lifted);
            REAL twice = own[k] + exit_[k] * carried + warp_sum(steps_k * s);
            REAL t = inverse[k] - (REAL)0.5 * twice;
            REAL resistance = later ? s + t : (REAL)0;
            REAL across[EACH];
#pragma unroll
            for (int n = 0; n < EACH; n++) across[n] = warp_sum(steps[n] * resistance);
#pragma unroll
            for (int n = 0; n < EACH; n++) {
                int line = i + FEW * n;
                REAL to_k = __shfl_sync(ALL, steps[n], k);
                if (line < k) {
                    if (later) known[n] += to_k * resistance;
                    else if (j == k) known[n] += across[n];
                    if (line == k - 1) turn[line & 1][j] = known[n];
                } else if (line == k) {
                    if (later) {
                        found[k][j] = resistance;
                        found[j][k] = resistance;
                    }
                }
            }
            if (j == k) lifted = t + carried;
        }
        if (i == 0) lift[j] = lifted;
    }
    __syncthreads();
    REAL *to = all_r + row * P * P;
    REAL own_entry = inside ? found[i][j] : (REAL)0;
    // The first block has the root in its first place.
    if (!rest && i == 0 && j >= low && j < high) own_entry = lift[j];
    if (!rest && j == 0 && i >= low && i < high) own_entry = lift[i];
    if (inside || !rest) to[(long long)(start + i) * P + start + j] = own_entry;
    if (i == 0) lifts[row * B + j] = lift[j];
}

// Lifts the rows of a block, and writes them as columns, too. 32 × 8 threads.
extern "C" __global__ void spread_block(REAL *all_r, const REAL *lifts, int start, int P) {
    __shared__ REAL tile[B][B + 1];
    REAL *r = all_r + (long long)blockIdx.y * P * P;
    int first = blockIdx.x * B;
#pragma unroll
    for (int part = 0; part < 4; part++) {
        int k = threadIdx.y + 8 * part;
        REAL *at = r + (long long)(start + k) * P + first + threadIdx.x;
        REAL lifted = *at + lifts[(long long)blockIdx.y * B + k];
        *at = lifted;
        tile[k][threadIdx.x] = lifted;
    }
    __syncthreads();
#pragma unroll
    for (int i = threadIdx.y; i < B; i += 8) r[(long long)(first + i) * P + start + threadIdx.x] = tile[threadIdx.x][i];
}

// Derivatives between the vertices of a block, and what is to be added to its rows; the directed kind. Before: the rows of g hold y up
// to `start`, x is in `columns`, W numbers a row of it. After: g has the rows and the columns of the block.
extern "C" __global__ void __launch_bounds__(1024) bring_back_directed(
    const REAL *all_q, REAL *all_g, const REAL *inverses, const REAL *up_inverses, const REAL *down_inverses, const REAL *exits,
    const REAL *z_outs, const REAL *z_ins, const REAL *columns, int start, int low, int high, int P, int W, int parts) {
    // rows_in and rows_out: rows of derivatives into and out of a vertex of the block, as far as they are known.
    __shared__ REAL up[B][B + 1], down[B][B + 1], rows_in[B][B + 1], rows_out[B][B + 1], g[B][B + 1];
    __shared__ REAL turn_in[2][B], turn_out[2][B], inverse[B], exit_[B], lift[B], own_in[B];
    long long row = blockIdx.x;
    const REAL *q = all_q + row * P * P;
    REAL *own = all_g + row * P * P;
    int i = threadIdx.y, j = threadIdx.x;
    bool inside = i >= low && i < high && j >= low && j < high;
    REAL kept = inside ? q[(long long)(start + i) * P + start + j] : (REAL)0;
    // First the triangular inverses and z, in the places of what comes later.
    bool rest = start > 0;
    up[i][j] = rest ? up_inverses[row * B * B + i * B + j] : (REAL)0;
    down[i][j] = rest ? down_inverses[row * B * B + i * B + j] : (REAL)0;
    rows_in[i][j] = rest ? sum_parts(z_ins, row, parts, i * B + j) : (REAL)0;
    rows_out[i][j] = rest ? sum_parts(z_outs, row, parts, i * B + j) : (REAL)0;
    g[i][j] = 0;
    if (i == 0) {
        inverse[j] = inverses[row * P + start + j];
        exit_[j] = exits[row * B + j];
    }
    __syncthreads();
    REAL in = 0, out = 0;
    if (rest && i >= low && i < high) {
#pragma unroll 8
        for (int l = 0; l < B; l++) {
            in += up[l][i] * rows_in[l][j];
            out += down[i][l] * rows_out[j][l];
        }
        in *= inverse[i];
        out *= inverse[i];
    }
    __syncthreads();
    up[i][j] = j > i ? kept : (REAL)0;
    down[i][j] = j < i ? kept : (REAL)0;
    rows_in[i][j] = in;
    rows_out[i][j] = out;
    if (i == j) own_in[i] = in;
    __syncthreads();
    if (i < FEW) {
        REAL into_rows[EACH], out_rows[EACH], steps[EACH], lifted = 0;
        for (int n = 0; n < EACH; n++) {
            into_rows[n] = rows_in[i + FEW * n][j];
            out_rows[n] = rows_out[i + FEW * n][j];
            steps[n] = up[i + FEW * n][j];
        }
        if (i == (high - 1) % FEW) {
            turn_in[(high - 1) & 1][j] = into_rows[(high - 1) / FEW];
            turn_out[(high - 1) & 1][j] = out_rows[(high - 1) / FEW];
        }
        for (int k = high - 1; k >= low; k--) {
            few_together();
            // Every warp finishes row k for itself, and adds it to its own.
            bool later = j > k && j < high;
            REAL to = later ? turn_out[k & 1][j] + exit_[k] * lifted : (REAL)0;
            REAL into = later ? down[j][k] : (REAL)0;
            REAL less = warp_sum(into * to);
            REAL carried = warp_sum(into * lifted);
            REAL t = inverse[k] - own_in[k] - less;
            REAL from = later ? turn_in[k & 1][j] + t : (REAL)0;
            REAL across_out[EACH], across_in[EACH];
#pragma unroll
            for (int n = 0; n < EACH; n++) {
                across_out[n] = warp_sum(steps[n] * from);
                across_in[n] = warp_sum(later ? down[j][i + FEW * n] * to : (REAL)0);
            }
#pragma unroll
            for (int n = 0; n < EACH; n++) {
                int line = i + FEW * n;
                REAL to_k = __shfl_sync(ALL, steps[n], k);
                if (line < k) {
                    if (later) {
                        out_rows[n] += to_k * to;
                        into_rows[n] += down[k][line] * from;
                    } else if (j == k) {
                        out_rows[n] += across_out[n];
                        into_rows[n] += across_in[n];
                    }
                    if (line == k - 1) {
                        turn_in[line & 1][j] = into_rows[n];
                        turn_out[line & 1][j] = out_rows[n];
                    }
                } else if (line == k && later) {
                    g[k][j] = from;
                    g[j][k] = to;
                }
            }
            if (j == k) lifted = t + carried;
        }
        if (i == 0) lift[j] = lifted;
    }
    __syncthreads();
    if (inside) own[(long long)(start + i) * P + start + j] = g[i][j];
    if (start > 0) {
        if (i < high)
            for (int c = j; c < start; c += B) own[(long long)(start + i) * P + c] += lift[i];
        const REAL *x = columns + row * P * W;
        for (int r = i; r < start; r += B) own[(long long)r * P + start + j] = x[(long long)r * W + j];
    } else {
        if (i == 0) own[j] = 0;
        if (j == 0 && i >= low && i < high) own[(long long)i * P] = lift[i];
    }
}

// The logarithm of the product of the pivots, or NaN where one of them is not to be trusted; one warp a row.
extern "C" __global__ void log_pivots(const REAL *pivots, double *logs, int size, int P, int rows) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    double sum = 0;
    bool trusted = true;
    for (int k = 1 + threadIdx.x; k < size; k += 32) {
        REAL pivot = pivots[(long long)row * P + k];
        trusted = trusted && pivot >= TINY && pivot <= HUGE_;
        sum += log((double)pivot);
    }
    for (int lane = 16; lane > 0; lane >>= 1) sum += __shfl_xor_sync(ALL, sum, lane);
    trusted = __all_sync(ALL, trusted);
    if (threadIdx.x == 0) logs[row] = trusted ? sum : nan("");
}

// Rows whose derivatives may be handed on: 1. Time at the root is the largest of them.
extern "C" __global__ void trust_derivatives(const REAL *g, const double *logs, u8 *trusted, int size, int P, int rows) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    bool fine = !isnan(logs[row]);
    for (int k = 1 + threadIdx.x; k < size; k += 32) {
        REAL time = g[(long long)row * P * P + (long long)k * P];
        fine = fine && time <= HUGE_;
    }
    fine = __all_sync(ALL, fine);
    if (threadIdx.x == 0) trusted[row] = fine;
}

// How probable every edge is before any data: derivatives of the row of weights, times these.
extern "C" __global__ void prior_marginals(REAL *marginals, const REAL *g, const REAL *prior, int n, int P, int directed) {
    int u = blockIdx.x * blockDim.x + threadIdx.x, v = blockIdx.y;
    if (u >= n || (!directed && u >= v)) return;
    long long at = directed ? (long long)(v + 1) * P + (u == v ? 0 : u + 1) : (long long)v * P + u;
    marginals[(long long)v * n + u] = g[at] * prior[(long long)v * n + u];
}
