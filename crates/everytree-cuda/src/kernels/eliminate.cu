// Blocks, from the last to the first: their vertices are eliminated, and what lies before them is brought up to date.

// Sums of the rates of two lines of a block to what lies outside of it, by one warp; several loads at once. Rows begin at multiples of B,
// and so does a block.
__device__ __forceinline__ void sum_outside(REAL *sums, const REAL *q, int start, const int *lines, int low, int high, int P) {
    int j = threadIdx.x;
    REAL parts[2][PACK] = {};
    bool any[2];
    const REAL *rows[2];
#pragma unroll
    for (int n = 0; n < 2; n++) {
        any[n] = lines[n] >= low && lines[n] < high;
        rows[n] = q + (long long)(start + lines[n]) * P;
        if (any[n] && start == 0 && j == 0) parts[n][0] = rows[n][0];
    }
    for (int first = j; first < start / PACK; first += 4 * B) {
        Pack some[2][4] = {};
#pragma unroll
        for (int n = 0; n < 2; n++)
#pragma unroll
            for (int m = 0; m < 4; m++)
                if (any[n] && first + m * B < start / PACK) some[n][m] = ((const Pack *)rows[n])[first + m * B];
#pragma unroll
        for (int n = 0; n < 2; n++)
#pragma unroll
            for (int m = 0; m < 4; m++)
                for (int part = 0; part < PACK; part++) parts[n][part] += some[n][m].numbers[part];
    }
#pragma unroll
    for (int n = 0; n < 2; n++) {
        for (int part = 1; part < PACK; part++) parts[n][0] += parts[n][part];
        sums[n] = warp_sum(parts[n][0]);
    }
}

// Eliminates the vertices of one block: pivots, their reciprocals, green; up and down stay in the block's own square of q. What coming
// back needs is put aside, too: the triangular inverses, (1 − down)⁻¹ and for the directed kind (1 − up)⁻¹, and the probabilities of
// leaving straight away. Names as in block.rs. Eight warps or more: those beyond help with loading.
template <bool DIRECTED> __device__ __forceinline__ void eliminate(
    REAL *all_q, REAL *pivots, REAL *inverses, REAL *greens, REAL *up_inverses, REAL *down_inverses, REAL *exits, int start, int low,
    int high, int P) {
    __shared__ __align__(16) REAL rates[B][LINE], down_inverse[B][LINE], up_inverse[DIRECTED ? B : 1][LINE], turn[2][B];
    __shared__ REAL outside[B], inverse[B], turn_outside[2], turn_down[2][B];
    long long row = blockIdx.x;
    REAL *q = all_q + row * P * P;
    int i = threadIdx.y, j = threadIdx.x, warps = blockDim.y;
    REAL loaded[EACH] = {};
#pragma unroll
    for (int n = 0; n < EACH; n++) {
        int line = i + warps * n;
        bool inside = line >= low && line < high && j >= low && j < high && line != j && (DIRECTED || j < line);
        if (inside) loaded[n] = q[(long long)(start + line) * P + start + j];
    }
#pragma unroll
    for (int n = 0; n < EACH; n += 2) {
        int lines[2] = {i + warps * n, i + warps * (n + 1)};
        if (lines[0] >= B) break;
        REAL sums[2];
        sum_outside(sums, q, start, lines, low, high, P);
        if (j == 0) outside[lines[0]] = sums[0];
        if (j == 0 && lines[1] < B) outside[lines[1]] = sums[1];
    }
#pragma unroll
    for (int n = 0; n < EACH; n++) {
        int line = i + warps * n;
        if (line >= B) break;
        if (DIRECTED || j <= line) rates[line][j] = loaded[n];
        if (!DIRECTED && j < line) rates[j][line] = loaded[n];
    }
    if (i == 0) inverse[j] = 0;
    __syncthreads();
    if (i >= FEW) return;
    // Both inverses grow with the elimination: a line of the lower one is done when its vertex is next, a column of the upper one when its
    // vertex has been.
    REAL own[EACH], out_of[EACH], below[EACH], above[EACH], ups[EACH] = {}, downs[EACH] = {};
#pragma unroll
    for (int n = 0; n < EACH; n++) {
        int line = EACH * i + n;
        own[n] = rates[line][j];
        out_of[n] = outside[line];
        below[n] = above[n] = line == j && line >= low && line < high ? (REAL)1 : (REAL)0;
        if (line == low) {
            turn[low][j] = own[n];
            turn_down[low][j] = below[n];
            if (j == 0) turn_outside[low] = out_of[n];
        }
    }
    for (int k = low; k < high; k++) {
        few_together();
        // Every warp for itself: the same sum in the same order.
        REAL rate = j > k ? turn[k & 1][j] : (REAL)0;
        REAL away = turn_outside[k & 1], of_first = turn_down[k & 1][j];
        // Rates into vertex k are those out of it, or lie in its column.
        Four into;
        if (DIRECTED) {
#pragma unroll
            for (int n = 0; n < EACH; n++) into[n] = __shfl_sync(ALL, own[n], k);
        } else {
            into = load_four(&turn[k & 1][EACH * i]);
        }
        REAL pivot = away + warp_sum(rate);
        REAL over = (REAL)1 / pivot;
        REAL step = rate * over, out = away * over;
#pragma unroll
        for (int n = 0; n < EACH; n++) {
            int line = EACH * i + n;
            REAL in = line > k ? into[n] : (REAL)0;
            REAL down = in * over;
            own[n] += in * step;
            out_of[n] += in * out;
            below[n] += down * of_first;
            if (DIRECTED) above[n] += __shfl_sync(ALL, above[n], k) * step;
            if (j == k) downs[n] = down;
            if (line == k) {
                ups[n] = step;
                if (j == 0) {
                    inverse[k] = over;
                    pivots[row * P + start + k] = pivot;
                }
            }
            if (line == k + 1) {
                turn[line & 1][j] = own[n];
                turn_down[line & 1][j] = below[n];
                if (j == 0) turn_outside[line & 1] = out_of[n];
            }
        }
    }
    few_together();
    REAL leaving[EACH];
    Four of_column;
#pragma unroll
    for (int n = 0; n < EACH; n++) {
        int line = EACH * i + n;
        // down_inverse times the reciprocals of the pivots, in the place of rates that nobody needs any more.
        rates[line][j] = inverse[line] * below[n];
        down_inverse[line][j] = below[n];
        of_column[n] = above[n];
        leaving[n] = below[n] * outside[j];
        bool inside = line >= low && line < high && j >= low && j < high;
        if (inside) q[(long long)(start + line) * P + start + j] = j > line ? ups[n] : downs[n];
        down_inverses[row * B * B + line * B + j] = below[n];
        if (DIRECTED) up_inverses[row * B * B + line * B + j] = above[n];
    }
    // Of the undirected kind one inverse is the other, transposed.
    if (DIRECTED) store_four(&up_inverse[j][EACH * i], of_column);
    REAL straight = sums_of<EACH>(leaving);
    if (j < EACH) exits[row * B + EACH * i + j] = straight * inverse[EACH * i + j];
    if (i == 0) inverses[row * P + start + j] = inverse[j];
    few_together();
    REAL green[EACH] = {};
#pragma unroll 8
    for (int l = 0; l < B; l++) {
        Four up = load_four(DIRECTED ? &up_inverse[l][EACH * i] : &down_inverse[l][EACH * i]);
        REAL scaled = rates[l][j];
#pragma unroll
        for (int n = 0; n < EACH; n++) green[n] += up[n] * scaled;
    }
#pragma unroll
    for (int n = 0; n < EACH; n++) greens[row * B * B + (EACH * i + n) * B + j] = green[n];
}

extern "C" __global__ void __launch_bounds__(1024) eliminate_undirected(
    REAL *q, REAL *pivots, REAL *inverses, REAL *greens, REAL *down_inverses, REAL *exits, int start, int low, int high, int P) {
    eliminate<false>(q, pivots, inverses, greens, 0, down_inverses, exits, start, low, high, P);
}

extern "C" __global__ void __launch_bounds__(1024) eliminate_directed(
    REAL *q, REAL *pivots, REAL *inverses, REAL *greens, REAL *up_inverses, REAL *down_inverses, REAL *exits, int start, int low,
    int high, int P) {
    eliminate<true>(q, pivots, inverses, greens, up_inverses, down_inverses, exits, start, low, high, P);
}

// Where walks leave a block, h = green × rates to the outside; and what that adds to the lines of its band that are still to be
// eliminated, from `first` on: rates into the block × h. A thread block has AT_ONCE columns, 32 × 4 threads; a thread has eight lines.
#define LEAVING 8
template <bool DIRECTED> __device__ __forceinline__ void leave(
    REAL *all_q, const REAL *greens, REAL *exits, int start, int first, int P, int panel) {
    // Columns of green, then of the rates into the block.
    __shared__ __align__(16) REAL factors[4][B][B], tile[B][AT_ONCE];
    long long row = blockIdx.y;
    REAL *q = all_q + row * P * P;
    int j = threadIdx.x, own = LEAVING * threadIdx.y, blocks = (start - first) / B;
    int column = blockIdx.x * AT_ONCE + PACK * j;
    bool any = column < start;
    Pack rates[LEAVING] = {};
#pragma unroll
    for (int n = 0; n < LEAVING; n++)
        if (any) rates[n] = *(const Pack *)(q + (long long)(start + own + n) * P + column);
    for (int number = 0; number <= blocks; number++) {
        REAL lines[LEAVING];
#pragma unroll
        for (int n = 0; n < LEAVING; n++) {
            int line = own + n;
            const REAL *from = number == 0 ? greens + row * B * B + line * B
                               : DIRECTED  ? q + (long long)(first + (number - 1) * B + line) * P + start
                                           : q + (long long)(start + line) * P + first + (number - 1) * B;
            lines[n] = from[j];
        }
        // Of the undirected kind, green is the same either way, and rates into the block are those out of it.
#pragma unroll
        for (int n = 0; n < LEAVING; n++) factors[number][DIRECTED ? j : own + n][DIRECTED ? own + n : j] = lines[n];
    }
#pragma unroll
    for (int n = 0; n < LEAVING; n++) *(Pack *)&tile[own + n][PACK * j] = rates[n];
    for (int number = 0; number <= blocks; number++) {
        REAL *to = number == 0 ? exits + row * panel + (long long)own * P + column
                               : q + (long long)(first + (number - 1) * B + own) * P + column;
        Pack sums[LEAVING] = {};
        if (number > 0 && any)
#pragma unroll
            for (int n = 0; n < LEAVING; n++) sums[n] = *(const Pack *)(to + (long long)n * P);
        __syncthreads();
#pragma unroll 4
        for (int l = 0; l < B; l++) {
            Four factor[LEAVING / 4];
#pragma unroll
            for (int n = 0; n < LEAVING / 4; n++) factor[n] = load_four(&factors[number][l][own + 4 * n]);
            Pack of_l = *(const Pack *)&tile[l][PACK * j];
#pragma unroll
            for (int n = 0; n < LEAVING; n++)
#pragma unroll
                for (int part = 0; part < PACK; part++) sums[n].numbers[part] += factor[n / 4][n % 4] * of_l.numbers[part];
        }
        if (any)
#pragma unroll
            for (int n = 0; n < LEAVING; n++) *(Pack *)(to + (long long)n * P) = sums[n];
        if (number > 0) continue;
        // From now on h, in the place of the rates.
        __syncthreads();
#pragma unroll
        for (int n = 0; n < LEAVING; n++) *(Pack *)&tile[own + n][PACK * j] = sums[n];
    }
}

extern "C" __global__ void __launch_bounds__(128) leave_undirected(
    REAL *q, const REAL *greens, REAL *exits, int start, int first, int P, int panel) {
    leave<false>(q, greens, exits, start, first, P, panel);
}

extern "C" __global__ void __launch_bounds__(128) leave_directed(
    REAL *q, const REAL *greens, REAL *exits, int start, int first, int P, int panel) {
    leave<true>(q, greens, exits, start, first, P, panel);
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
