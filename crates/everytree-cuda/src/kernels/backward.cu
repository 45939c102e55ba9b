// Blocks, from the first to the last: derivatives by the rates of all rows.

// Products of 32 × 32 numbers over many: z[k][l] = Σ_i a[k][i] b[l][i], or with both transposed. A thread block takes `times` AT_ONCE of
// the i; what it finds is one of the parts that are added up later, in order, or all of it. Of several squares of results, the rows of b
// go on from one to the next. Results lie `line` apart, those of a part `part`, of a row `matrix`, of a square `square`. 256 threads: a
// quarter of them every fourth i, each of these 4 × 4 results.
#define GROUPS (AT_ONCE / B)
__device__ __forceinline__ void load_narrow(REAL *to, const REAL *from, int stride, int first, int count, int transposed) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    // All of it is on its way at once.
    REAL numbers[GROUPS][4];
#pragma unroll
    for (int part = 0; part < GROUPS; part++)
#pragma unroll
        for (int n = 0; n < 4; n++) {
            int i = transposed ? warp + 8 * (4 * part + n) : lane + 32 * part, k = transposed ? lane : 4 * warp + n;
            long long at = transposed ? (long long)(first + i) * stride + k : (long long)k * stride + first + i;
            numbers[part][n] = i < count ? from[at] : (REAL)0;
        }
#pragma unroll
    for (int part = 0; part < GROUPS; part++) {
        Four four;
#pragma unroll
        for (int n = 0; n < 4; n++) {
            if (transposed) to[(warp + 8 * (4 * part + n)) * LINE + lane] = numbers[part][n];
            else four[n] = numbers[part][n];
        }
        if (!transposed) store_four(to + (lane + 32 * part) * LINE + 4 * warp, four);
    }
}
extern "C" __global__ void __launch_bounds__(256) narrow_products(
    REAL *to, const REAL *a, const REAL *b, int along, int times, int transposed, int a_stride, int a_matrix, int b_stride, int b_matrix,
    int line, int part, int matrix, int square) {
    __shared__ __align__(16) REAL both[2 * AT_ONCE * LINE];
    REAL *left = both, *right = both + AT_ONCE * LINE;
    const REAL *of_a = a + (long long)blockIdx.y * a_matrix;
    const REAL *of_b = b + (long long)blockIdx.y * b_matrix + (long long)blockIdx.z * B * b_stride;
    int quarter = threadIdx.x >> 6, k = (threadIdx.x >> 3 & 7) * 4, l = (threadIdx.x & 7) * 4;
    REAL z[4][4] = {};
    for (int time = 0; time < times; time++) {
        int first = (blockIdx.x * times + time) * AT_ONCE, count = min(AT_ONCE, along - first);
        load_narrow(left, of_a, a_stride, first, count, transposed);
        load_narrow(right, of_b, b_stride, first, count, transposed);
        __syncthreads();
#pragma unroll 4
        for (int i = quarter; i < count; i += 4) {
            Four of_k = load_four(left + i * LINE + k), of_l = load_four(right + i * LINE + l);
#pragma unroll
            for (int n = 0; n < 4; n++)
#pragma unroll
                for (int m = 0; m < 4; m++) z[n][m] += of_k[n] * of_l[m];
        }
        __syncthreads();
    }
#pragma unroll
    for (int n = 0; n < 4; n++) {
        Four four;
#pragma unroll
        for (int m = 0; m < 4; m++) four[m] = z[n][m];
        store_four(both + quarter * B * B + (k + n) * B + l, four);
    }
    __syncthreads();
    REAL *own = to + (long long)blockIdx.x * part + (long long)blockIdx.y * matrix + (long long)blockIdx.z * square;
#pragma unroll
    for (int place = threadIdx.x; place < B * B; place += 256)
        own[(long long)(place / B) * line + place % B] =
            (both[place] + both[B * B + place]) + (both[2 * B * B + place] + both[3 * B * B + place]);
}

// The sums of the parts of a square of results, the lines of a warp; 32 × 8 threads.
__device__ __forceinline__ void sum_parts(REAL *sums, const REAL *parts, int count) {
    const REAL *own = parts + EACH * threadIdx.y * B + threadIdx.x;
#pragma unroll
    for (int n = 0; n < EACH; n++) sums[n] = 0;
#pragma unroll 4
    for (int part = 0; part < count; part++)
#pragma unroll
        for (int n = 0; n < EACH; n++) sums[n] += own[part * B * B + n * B];
}

// Adds up the parts of squares of results, one beside the other in the rows that begin at `to`.
extern "C" __global__ void add_narrow(REAL *to, const REAL *parts, int count, int P) {
    long long row = blockIdx.x;
    REAL sums[EACH];
    sum_parts(sums, parts + ((long long)blockIdx.y * gridDim.x + row) * count * B * B, count);
    REAL *own = to + row * P * P + EACH * threadIdx.y * P + blockIdx.y * B + threadIdx.x;
#pragma unroll
    for (int n = 0; n < EACH; n++) own[n * P] = sums[n];
}

// Resistances between the vertices of a block, and the lift of each; see undirected.rs. 32 × 8 threads.
extern "C" __global__ void __launch_bounds__(256) backward_undirected(
    const REAL *all_q, REAL *all_r, const REAL *inverses, const REAL *down_inverses, const REAL *exits, const REAL *z_parts,
    REAL *lifts, int start, int low, int high, int P, int parts) {
    // Columns of up, of the lower inverse, and what later columns add to a line: Σ up[line][l] r[l][k], in column k.
    __shared__ __align__(16) REAL up[B][LINE], down[B][LINE], across[B][LINE], found[B][LINE];
    __shared__ REAL turn[2][B], turn_up[2][B], inverse[B], exit_[B], lift[B], own[B];
    long long row = blockIdx.x;
    const REAL *q = all_q + row * P * P;
    int i = threadIdx.y, j = threadIdx.x;
    bool rest = start > 0;
    REAL z[EACH], steps[EACH] = {}, known[EACH] = {}, lifted = 0;
    sum_parts(z, z_parts + row * parts * B * B, rest ? parts : 0);
    Four of_up, of_down;
#pragma unroll
    for (int n = 0; n < EACH; n++) {
        int line = EACH * i + n;
        if (line >= low && line < j && j < high) steps[n] = q[(long long)(start + line) * P + start + j];
        of_up[n] = steps[n];
        of_down[n] = rest ? down_inverses[row * B * B + line * B + j] : (REAL)0;
        // z, in the place of what comes later.
        found[line][j] = z[n];
    }
    store_four(&up[j][EACH * i], of_up);
    store_four(&down[j][EACH * i], of_down);
    if (i == 0) {
        inverse[j] = inverses[row * P + start + j];
        exit_[j] = exits[row * B + j];
    }
    __syncthreads();
    // What comes from outside: Σ_i u_k[i] y[l][i]
#pragma unroll 8
    for (int l = 0; l < B; l++) {
        Four of_l = load_four(&down[l][EACH * i]);
        REAL of_z = found[l][j];
#pragma unroll
        for (int n = 0; n < EACH; n++) known[n] += of_l[n] * of_z;
    }
#pragma unroll
    for (int n = 0; n < EACH; n++) {
        int line = EACH * i + n;
        known[n] *= inverse[line];
        if (line == j) own[line] = known[n];
        if (line == high - 1) {
            turn[line & 1][j] = known[n];
            turn_up[line & 1][j] = steps[n];
        }
    }
    for (int k = high - 1; k >= low; k--) {
        __syncthreads();
        // Every warp finishes line k for itself, and adds it to its own.
        bool later = j > k && j < high;
        REAL steps_k = turn_up[k & 1][j];
        REAL s = later ? turn[k & 1][j] + across[k][j] + exit_[k] * lifted : (REAL)0;
        REAL carried = warp_sum(steps_k * lifted);
        REAL twice = own[k] + exit_[k] * carried + warp_sum(steps_k * s);
        REAL t = inverse[k] - (REAL)0.5 * twice;
        REAL resistance = later ? s + t : (REAL)0;
        Four to_k = load_four(&up[k][EACH * i]);
        REAL sums[EACH];
#pragma unroll
        for (int n = 0; n < EACH; n++) {
            int line = EACH * i + n;
            sums[n] = steps[n] * resistance;
            known[n] += to_k[n] * resistance;
            if (line == k - 1) {
                turn[line & 1][j] = known[n];
                turn_up[line & 1][j] = steps[n];
            }
        }
        REAL sum = sums_of<EACH>(sums);
        if (j < EACH) across[EACH * i + j][k] = sum;
        if (i == k / EACH && later) {
            found[k][j] = resistance;
            found[j][k] = resistance;
        }
        if (j == k) lifted = t + carried;
    }
    if (i == 0) lift[j] = lifted;
    __syncthreads();
    REAL *to = all_r + row * P * P;
#pragma unroll
    for (int n = 0; n < EACH; n++) {
        int line = EACH * i + n;
        bool inside = line >= low && line < high && j >= low && j < high;
        REAL entry = inside && line != j ? found[line][j] : (REAL)0;
        // The first block has the root in its first place.
        if (!rest && line == 0 && j >= low && j < high) entry = lift[j];
        if (!rest && j == 0 && line >= low && line < high) entry = lift[line];
        if (inside || !rest) to[(long long)(start + line) * P + start + j] = entry;
    }
    if (i == 0) lifts[row * B + j] = lift[j];
}

// Lifts the rows of a block, and writes them as columns, too. 32 × 8 threads.
extern "C" __global__ void spread_undirected(REAL *all_r, const REAL *lifts, int start, int P) {
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

// Derivatives between the vertices of a block, and the lift of each; the directed kind. 32 × 8 threads.
extern "C" __global__ void __launch_bounds__(256) backward_directed(
    const REAL *all_q, REAL *all_g, const REAL *inverses, const REAL *up_inverses, const REAL *down_inverses, const REAL *exits,
    const REAL *z_outs, const REAL *z_ins, REAL *lifts, int start, int low, int high, int P, int parts) {
    // Each is used twice. First: the upper inverse, columns of the lower one, z_in, columns of z_out. Then: columns of up, columns of
    // down, and what later columns add to a line of derivatives into and out of a vertex, in column k.
    __shared__ __align__(16) REAL up[B][LINE], down[B][LINE], across_in[B][LINE], across_out[B][LINE], g[B][LINE];
    __shared__ REAL turn_in[2][B], turn_out[2][B], inverse[B], exit_[B], lift[B], own_in[B];
    long long row = blockIdx.x;
    const REAL *q = all_q + row * P * P;
    REAL *own = all_g + row * P * P;
    int i = threadIdx.y, j = threadIdx.x;
    bool rest = start > 0;
    REAL in[EACH], out[EACH], kept[EACH] = {}, lifted = 0;
    sum_parts(in, z_ins + row * parts * B * B, rest ? parts : 0);
    sum_parts(out, z_outs + row * parts * B * B, rest ? parts : 0);
    Four of_down, of_out, of_up;
#pragma unroll
    for (int n = 0; n < EACH; n++) {
        int line = EACH * i + n;
        if (line >= low && line < high && j >= low && j < high) kept[n] = q[(long long)(start + line) * P + start + j];
        up[line][j] = rest ? up_inverses[row * B * B + line * B + j] : (REAL)0;
        of_down[n] = rest ? down_inverses[row * B * B + line * B + j] : (REAL)0;
        across_in[line][j] = in[n];
        of_out[n] = out[n];
        in[n] = out[n] = 0;
    }
    store_four(&down[j][EACH * i], of_down);
    store_four(&across_out[j][EACH * i], of_out);
    if (i == 0) {
        inverse[j] = inverses[row * P + start + j];
        exit_[j] = exits[row * B + j];
    }
    __syncthreads();
#pragma unroll 8
    for (int l = 0; l < B; l++) {
        Four up_l = load_four(&up[l][EACH * i]), down_l = load_four(&down[l][EACH * i]);
        REAL z_in = across_in[l][j], z_out = across_out[l][j];
#pragma unroll
        for (int n = 0; n < EACH; n++) {
            in[n] += up_l[n] * z_in;
            out[n] += down_l[n] * z_out;
        }
    }
    __syncthreads();
    REAL steps[EACH], downs[EACH];
#pragma unroll
    for (int n = 0; n < EACH; n++) {
        int line = EACH * i + n;
        in[n] *= inverse[line];
        out[n] *= inverse[line];
        of_up[n] = steps[n] = j > line ? kept[n] : (REAL)0;
        of_down[n] = j < line ? kept[n] : (REAL)0;
        if (line == j) own_in[line] = in[n];
        if (line == high - 1) {
            turn_in[line & 1][j] = in[n];
            turn_out[line & 1][j] = out[n];
        }
    }
    store_four(&up[j][EACH * i], of_up);
    store_four(&down[j][EACH * i], of_down);
    __syncthreads();
#pragma unroll
    for (int n = 0; n < EACH; n++) downs[n] = down[EACH * i + n][j];
    for (int k = high - 1; k >= low; k--) {
        __syncthreads();
        // Every warp finishes line k for itself, and adds it to its own.
        bool later = j > k && j < high;
        REAL to = later ? turn_out[k & 1][j] + across_out[k][j] + exit_[k] * lifted : (REAL)0;
        REAL into = down[k][j];
        REAL less = warp_sum(into * to);
        REAL carried = warp_sum(into * lifted);
        REAL t = inverse[k] - own_in[k] - less;
        REAL from = later ? turn_in[k & 1][j] + across_in[k][j] + t : (REAL)0;
        Four to_k = load_four(&up[k][EACH * i]);
        REAL sums[2 * EACH];
#pragma unroll
        for (int n = 0; n < EACH; n++) {
            int line = EACH * i + n;
            sums[n] = steps[n] * from;
            sums[EACH + n] = downs[n] * to;
            out[n] += to_k[n] * to;
            in[n] += down[line][k] * from;
            if (line == k - 1) {
                turn_in[line & 1][j] = in[n];
                turn_out[line & 1][j] = out[n];
            }
        }
        REAL sum = sums_of<2 * EACH>(sums);
        if (j < EACH) across_out[EACH * i + j][k] = sum;
        else if (j < 2 * EACH) across_in[EACH * (i - 1) + j][k] = sum;
        if (i == k / EACH && later) {
            g[k][j] = from;
            g[j][k] = to;
        }
        if (j == k) lifted = t + carried;
    }
    if (i == 0) {
        lift[j] = lifted;
        lifts[row * B + j] = lifted;
    }
    __syncthreads();
#pragma unroll
    for (int n = 0; n < EACH; n++) {
        int line = EACH * i + n;
        bool inside = line >= low && line < high && j >= low && j < high;
        if (inside) own[(long long)(start + line) * P + start + j] = line == j ? (REAL)0 : g[line][j];
        if (!rest && j == 0 && line >= low && line < high) own[(long long)line * P] = lift[line];
    }
    if (!rest && i == 0) own[j] = 0;
}

// Lifts the rows of a block, which hold y up to `start`, and writes its columns: x, W numbers a row. 32 × 8 threads.
extern "C" __global__ void spread_directed(REAL *all_g, const REAL *lifts, const REAL *columns, int start, int P, int W) {
    REAL *g = all_g + (long long)blockIdx.y * P * P;
    const REAL *x = columns + (long long)blockIdx.y * P * W;
    int first = blockIdx.x * B, j = threadIdx.x;
#pragma unroll
    for (int part = 0; part < 4; part++) {
        int i = threadIdx.y + 8 * part;
        g[(long long)(start + i) * P + first + j] += lifts[(long long)blockIdx.y * B + i];
        g[(long long)(first + i) * P + start + j] = x[(long long)(first + i) * W + j];
    }
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
