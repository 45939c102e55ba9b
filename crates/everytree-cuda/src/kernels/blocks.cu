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

// The first eight warps wait for each other: what goes one vertex after the other is theirs, four rows each, in registers. The others,
// if there are more, help with what goes at once: with few rows they make it shorter, with many rows they would keep others waiting.
#define FEW 8
#define EACH (B / FEW)
__device__ __forceinline__ void few_together() { asm volatile("bar.sync 1, 256;" ::: "memory"); }

// As many numbers as are loaded at once.
#define PACK ((int)(16 / sizeof(REAL)))
struct __align__(16) Pack {
    REAL numbers[PACK];
};

// Sum of the rates of a vertex to what lies outside of its block, by one warp; several loads at once. Rows begin at multiples of B, and
// so does a block.
__device__ REAL sum_outside(const REAL *q, int start, int vertex, int P) {
    int j = threadIdx.x;
    REAL sums[PACK] = {};
    const REAL *row = q + (long long)(start + vertex) * P;
    const Pack *packs = (const Pack *)row;
    if (start == 0 && j == 0) sums[0] = row[0];
    for (int first = 0; first < start / PACK; first += 8 * B) {
        Pack some[8] = {};
#pragma unroll
        for (int n = 0; n < 8; n++)
            if (first + n * B + j < start / PACK) some[n] = packs[first + n * B + j];
#pragma unroll
        for (int n = 0; n < 8; n++)
            for (int part = 0; part < PACK; part++) sums[part] += some[n].numbers[part];
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
    int i = threadIdx.y, j = threadIdx.x, warps = blockDim.y;
    for (int line = i; line < B; line += warps) {
        bool inside = line >= low && line < high && j >= low && j < high;
        REAL rate = inside && line != j && (directed || j < line) ? q[(long long)(start + line) * P + start + j] : (REAL)0;
        if (directed || j <= line) rates[line][j] = rate;
        if (!directed && j < line) rates[j][line] = rate;
        up[line][j] = 0;
        down[line][j] = 0;
        REAL sum = line >= low && line < high ? sum_outside(q, start, line, P) : (REAL)0;
        if (j == 0) outside[line] = sum;
    }
    if (i == 0) inverse[j] = 0;
    __syncthreads();
    if (i < FEW) {
        REAL own[EACH], out_of[EACH];
        for (int r = 0; r < EACH; r++) {
            own[r] = rates[i + FEW * r][j];
            out_of[r] = outside[i + FEW * r];
        }
        // The first vertex is number 0 or 1.
        if (i == low) {
            turn[low][j] = own[0];
            if (j == 0) turn_outside[low] = out_of[0];
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
    if (i == 0) inverses[row * P + start + j] = inverse[j];
    for (int line = i; line < B; line += warps) {
        bool inside = line >= low && line < high && j >= low && j < high;
        if (inside) q[(long long)(start + line) * P + start + j] = j > line ? up[line][j] : down[line][j];
        REAL green = 0;
#pragma unroll 8
        for (int l = 0; l < B; l++) green += up_inverse[line][l] * scaled[l][j];
        long long at = row * B * B + line * B + j;
        greens[at] = green;
        up_inverses[at] = up_inverse[line][j];
        down_inverses[at] = down_inverse[line][j];
        REAL total = warp_sum(inside && j <= line ? down_inverse[line][j] * outside[j] : (REAL)0);
        if (j == 0) exits[row * B + line] = total * inverse[line];
    }
}

// Products of 32 × 32 numbers over many: z[k][l] = Σ_i a[k][i] b[l][i], or with both transposed. A thread block takes AT_ONCE of the i;
// what it finds is one of the parts that are added up later, in order. Of several squares of results, the rows of b go on from one to the
// next. 256 threads: a quarter of them every fourth i, each of these 4 × 4 results.
#define AT_ONCE (512 / (int)sizeof(REAL))
#define GROUPS (AT_ONCE / B)
// Numbers of an i; those of the next begin elsewhere in shared memory.
#define OF_ONE (B + PACK)
struct Four {
    Pack packs[4 / PACK];
    __device__ __forceinline__ REAL &operator[](int n) { return packs[n / PACK].numbers[n % PACK]; }
};
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
            if (transposed) to[(warp + 8 * (4 * part + n)) * OF_ONE + lane] = numbers[part][n];
            else four[n] = numbers[part][n];
        }
        if (!transposed) *(Four *)(to + (lane + 32 * part) * OF_ONE + 4 * warp) = four;
    }
}
extern "C" __global__ void __launch_bounds__(256) narrow_products(
    REAL *parts, const REAL *a, const REAL *b, int along, int a_stride, int b_stride, int transposed, int a_matrix,
    int b_matrix) {
    __shared__ __align__(16) REAL both[2 * AT_ONCE * OF_ONE];
    REAL *left = both, *right = both + AT_ONCE * OF_ONE;
    int first = blockIdx.x * AT_ONCE, count = min(AT_ONCE, along - first);
    load_narrow(left, a + (long long)blockIdx.y * a_matrix, a_stride, first, count, transposed);
    load_narrow(right, b + (long long)blockIdx.y * b_matrix + (long long)blockIdx.z * B * b_stride, b_stride, first, count, transposed);
    __syncthreads();
    int quarter = threadIdx.x >> 6, k = (threadIdx.x >> 3 & 7) * 4, l = (threadIdx.x & 7) * 4;
    REAL z[4][4] = {};
#pragma unroll 4
    for (int i = quarter; i < count; i += 4) {
        Four of_k = *(const Four *)(left + i * OF_ONE + k), of_l = *(const Four *)(right + i * OF_ONE + l);
#pragma unroll
        for (int n = 0; n < 4; n++)
#pragma unroll
            for (int m = 0; m < 4; m++) z[n][m] += of_k[n] * of_l[m];
    }
    __syncthreads();
#pragma unroll
    for (int n = 0; n < 4; n++) {
        Four four;
#pragma unroll
        for (int m = 0; m < 4; m++) four[m] = z[n][m];
        *(Four *)(both + quarter * B * B + (k + n) * B + l) = four;
    }
    __syncthreads();
    REAL *to = parts + (((long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * B * B;
#pragma unroll
    for (int place = threadIdx.x; place < B * B; place += 256)
        to[place] = (both[place] + both[B * B + place]) + (both[2 * B * B + place] + both[3 * B * B + place]);
}

// The sums of the parts of a square of results, a thread's own lines of it.
__device__ __forceinline__ void sum_parts(REAL *sums, const REAL *parts, int count) {
    const REAL *own = parts + threadIdx.y * B + threadIdx.x;
#pragma unroll
    for (int n = 0; n < EACH; n++) sums[n] = 0;
#pragma unroll 4
    for (int part = 0; part < count; part++)
#pragma unroll
        for (int n = 0; n < EACH; n++) {
            int line = threadIdx.y + blockDim.y * n;
            if (line < B) sums[n] += own[(long long)part * B * B + blockDim.y * n * B];
        }
}

// Adds up the parts of squares of results, one beside the other in the rows that begin at `to`.
extern "C" __global__ void add_narrow(REAL *to, const REAL *parts, int count, int P) {
    long long row = blockIdx.x;
    REAL sums[EACH];
    sum_parts(sums, parts + ((long long)blockIdx.y * gridDim.x + row) * count * B * B, count);
#pragma unroll
    for (int n = 0; n < EACH; n++) {
        int line = threadIdx.y + blockDim.y * n;
        if (line < B) to[row * P * P + (long long)line * P + blockIdx.y * B + threadIdx.x] = sums[n];
    }
}

// Resistances between the vertices of a block, and the lift of each; see undirected.rs.
extern "C" __global__ void __launch_bounds__(1024) bring_back_undirected(
    const REAL *all_q, REAL *all_r, const REAL *inverses, const REAL *down_inverses, const REAL *exits, const REAL *z_parts,
    REAL *lifts, int start, int low, int high, int P, int parts) {
    __shared__ REAL up[B][B + 1], down[B][B + 1], r[B][B + 1], found[B][B + 1], turn[2][B];
    __shared__ REAL inverse[B], exit_[B], lift[B], own[B];
    long long row = blockIdx.x;
    const REAL *q = all_q + row * P * P;
    int i = threadIdx.y, j = threadIdx.x, warps = blockDim.y;
    bool rest = start > 0;
    REAL z[EACH];
    sum_parts(z, z_parts + row * parts * B * B, rest ? parts : 0);
#pragma unroll
    for (int n = 0; n < EACH; n++) {
        int line = i + warps * n;
        if (line >= B) break;
        bool inside = line >= low && line < high && j >= low && j < high;
        up[line][j] = inside && j > line ? q[(long long)(start + line) * P + start + j] : (REAL)0;
        down[line][j] = rest ? down_inverses[row * B * B + line * B + j] : (REAL)0;
        // In the place of what comes later.
        found[line][j] = z[n];
    }
    if (i == 0) {
        inverse[j] = inverses[row * P + start + j];
        exit_[j] = exits[row * B + j];
    }
    __syncthreads();
    // What comes from outside: Σ_i u_k[i] y[l][i]
    for (int line = i; line < B; line += warps) {
        REAL step = 0;
        if (rest && line >= low && line < high) {
            // Above the diagonal there is nothing.
#pragma unroll 8
            for (int l = 0; l < B; l++) step += down[line][l] * found[l][j];
            step *= inverse[line];
        }
        r[line][j] = step;
        if (line == j) own[line] = step;
    }
    __syncthreads();
    for (int line = i; line < B; line += warps) found[line][j] = 0;
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
    for (int line = i; line < B; line += warps) {
        bool inside = line >= low && line < high && j >= low && j < high;
        REAL entry = inside ? found[line][j] : (REAL)0;
        // The first block has the root in its first place.
        if (!rest && line == 0 && j >= low && j < high) entry = lift[j];
        if (!rest && j == 0 && line >= low && line < high) entry = lift[line];
        if (inside || !rest) to[(long long)(start + line) * P + start + j] = entry;
    }
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
    int i = threadIdx.y, j = threadIdx.x, warps = blockDim.y;
    // First the triangular inverses and z, in the places of what comes later.
    bool rest = start > 0;
    REAL in[EACH], out[EACH], kept[EACH] = {};
    sum_parts(in, z_ins + row * parts * B * B, rest ? parts : 0);
    sum_parts(out, z_outs + row * parts * B * B, rest ? parts : 0);
#pragma unroll
    for (int n = 0; n < EACH; n++) {
        int line = i + warps * n;
        if (line >= B) break;
        if (line >= low && line < high && j >= low && j < high) kept[n] = q[(long long)(start + line) * P + start + j];
        long long at = row * B * B + line * B + j;
        up[line][j] = rest ? up_inverses[at] : (REAL)0;
        down[line][j] = rest ? down_inverses[at] : (REAL)0;
        rows_in[line][j] = in[n];
        rows_out[line][j] = out[n];
        g[line][j] = 0;
    }
    if (i == 0) {
        inverse[j] = inverses[row * P + start + j];
        exit_[j] = exits[row * B + j];
    }
    __syncthreads();
#pragma unroll
    for (int n = 0; n < EACH; n++) {
        int line = i + warps * n;
        in[n] = out[n] = 0;
        if (rest && line >= low && line < high) {
#pragma unroll 8
            for (int l = 0; l < B; l++) {
                in[n] += up[l][line] * rows_in[l][j];
                out[n] += down[line][l] * rows_out[j][l];
            }
            in[n] *= inverse[line];
            out[n] *= inverse[line];
        }
    }
    __syncthreads();
#pragma unroll
    for (int n = 0; n < EACH; n++) {
        int line = i + warps * n;
        if (line >= B) break;
        up[line][j] = j > line ? kept[n] : (REAL)0;
        down[line][j] = j < line ? kept[n] : (REAL)0;
        rows_in[line][j] = in[n];
        rows_out[line][j] = out[n];
        if (line == j) own_in[line] = in[n];
    }
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
    for (int line = i; line < high; line += warps) {
        if (line >= low && j >= low && j < high) own[(long long)(start + line) * P + start + j] = g[line][j];
        for (int c = j; c < start; c += B) own[(long long)(start + line) * P + c] += lift[line];
        if (!rest && j == 0 && line >= low) own[(long long)line * P] = lift[line];
    }
    if (rest) {
        const REAL *x = columns + row * P * W;
#pragma unroll 8
        for (int r = i; r < start; r += warps) own[(long long)r * P + start + j] = x[(long long)r * W + j];
    } else if (i == 0) {
        own[j] = 0;
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
