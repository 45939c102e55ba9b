// The small dense part of the elimination, one thread block a row; everything large is a batched matrix product.
//
// Index 0 is the root: vertex 0 of the undirected kind, whose rates are the same both ways, or the root above all vertices of
// the directed kind. Blocks of B indices go from the last to the first, and come back from the first to the last; see
// kernel/directed.rs, of which this is the same algorithm. Nothing is subtracted but where the mathematics subtracts.
//
// REAL is float or double, TINY and HUGE_ bound the pivots that are trusted.

#define B 32

typedef unsigned short u16;

// Sum over the 32 threads of a warp, the same in all of them.
__device__ __forceinline__ REAL warp_sum(REAL x) {
    for (int lane = 16; lane > 0; lane >>= 1) x += __shfl_xor_sync(0xffffffffu, x, lane);
    return x;
}

// Rates of every row, by its states. q is rows × P × P.
extern "C" __global__ void fill_rates(
    REAL *q, const REAL *rates, const u16 *states, int n, int size, int P, int S, int directed) {
    long long row = blockIdx.z;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= P || j >= P) return;
    const u16 *own = states + row * n;
    REAL rate = 0;
    if (i < size && j < size) {
        if (directed) {
            if (i > 0) {
                long long a = own[i - 1];
                if (j == 0) rate = rates[a * S + a];
                else if (i != j) rate = rates[a * S + own[j - 1]];
            }
        } else if (i != j) {
            int v = i > j ? i : j, u = i > j ? j : i;
            rate = rates[(long long)own[v] * S + own[u]];
        }
    }
    q[row * P * P + (long long)i * P + j] = rate;
}

// What a thread block shares about the B vertices it works on; names as in block.rs.
struct Block {
    REAL rates[B][B + 1];
    REAL up[B][B + 1];
    REAL down[B][B + 1];
    REAL up_inverse[B][B + 1];
    REAL down_inverse[B][B + 1];
    REAL green[B][B + 1];
    REAL outside[B];
    REAL inverse[B];
};

// (1 − up)⁻¹, (1 − down)⁻¹ and green; all threads of the block. A row that is done is added to all that need it, at once: one
// multiplication a thread and step.
__device__ void invert(Block &s, int low, int high) {
    int i = threadIdx.y, j = threadIdx.x;
    s.up_inverse[i][j] = i == j && i >= low && i < high ? (REAL)1 : (REAL)0;
    s.down_inverse[i][j] = i == j && i >= low && i < high ? (REAL)1 : (REAL)0;
    __syncthreads();
    for (int step = 0; step < high - low; step++) {
        int last = high - 1 - step, first = low + step;
        if (i < last) s.up_inverse[i][j] += s.up[i][last] * s.up_inverse[last][j];
        if (i > first) s.down_inverse[i][j] += s.down[i][first] * s.down_inverse[first][j];
        __syncthreads();
    }
    REAL sum = 0;
    if (i >= low && i < high)
        for (int l = i; l < high; l++) sum += s.up_inverse[i][l] * s.inverse[l] * s.down_inverse[l][j];
    s.green[i][j] = sum;
    __syncthreads();
}

// Sums of rates to what lies outside, one warp a vertex.
__device__ void sum_outside(Block &s, const REAL *q, int start, int low, int high, int P) {
    int i = threadIdx.y, j = threadIdx.x;
    REAL sum = 0;
    if (i >= low && i < high) {
        const REAL *row = q + (long long)(start + i) * P;
        if (start > 0) {
            for (int c = j; c < start; c += B) sum += row[c];
        } else if (j == 0) {
            sum = row[0];
        }
    }
    sum = warp_sum(sum);
    if (j == 0) s.outside[i] = sum;
}

// Eliminates the vertices of one block: pivots, their reciprocals, green; up and down stay in the block's own square of q.
extern "C" __global__ void eliminate_block(
    REAL *all_q, REAL *pivots, REAL *inverses, REAL *greens, int start, int low, int high, int P) {
    __shared__ Block s;
    long long row = blockIdx.x;
    REAL *q = all_q + row * P * P;
    int i = threadIdx.y, j = threadIdx.x;
    bool inside = i >= low && i < high && j >= low && j < high;
    s.rates[i][j] = inside && i != j ? q[(long long)(start + i) * P + start + j] : (REAL)0;
    s.up[i][j] = 0;
    s.down[i][j] = 0;
    if (i == 0) s.inverse[j] = 0;
    sum_outside(s, q, start, low, high, P);
    __syncthreads();
    for (int k = low; k < high; k++) {
        // Every warp for itself: the same sum in the same order.
        REAL rate = j > k && j < high ? s.rates[k][j] : (REAL)0;
        REAL pivot = s.outside[k] + warp_sum(rate);
        REAL inverse = (REAL)1 / pivot;
        REAL step = rate * inverse;
        REAL in = i > k && i < high ? s.rates[i][k] : (REAL)0;
        REAL out = s.outside[k] * inverse;
        __syncthreads();
        if (i == k) {
            s.up[k][j] = step;
            if (j == 0) {
                s.inverse[k] = inverse;
                pivots[row * P + start + k] = pivot;
            }
        } else if (i > k && i < high) {
            if (j > k) s.rates[i][j] += in * step;
            if (j == 0) {
                s.down[i][k] = in * inverse;
                s.outside[i] += in * out;
            }
        }
        __syncthreads();
    }
    if (i >= low && i < high && j >= low && j < high)
        q[(long long)(start + i) * P + start + j] = j > i ? s.up[i][j] : s.down[i][j];
    if (i == 0) inverses[row * P + start + j] = s.inverse[j];
    invert(s, low, high);
    greens[row * B * B + i * B + j] = s.green[i][j];
}

// What a block that comes back needs again: green, both triangular inverses, and the probabilities of leaving straight away.
extern "C" __global__ void recall_block(
    const REAL *all_q, const REAL *inverses, REAL *greens, REAL *up_inverses, REAL *down_inverses, REAL *exits, int start,
    int low, int high, int P) {
    __shared__ Block s;
    long long row = blockIdx.x;
    const REAL *q = all_q + row * P * P;
    int i = threadIdx.y, j = threadIdx.x;
    bool inside = i >= low && i < high && j >= low && j < high;
    REAL kept = inside ? q[(long long)(start + i) * P + start + j] : (REAL)0;
    s.up[i][j] = j > i ? kept : (REAL)0;
    s.down[i][j] = j < i ? kept : (REAL)0;
    if (i == 0) s.inverse[j] = inverses[row * P + start + j];
    sum_outside(s, q, start, low, high, P);
    __syncthreads();
    invert(s, low, high);
    greens[row * B * B + i * B + j] = s.green[i][j];
    up_inverses[row * B * B + i * B + j] = s.up_inverse[i][j];
    down_inverses[row * B * B + i * B + j] = s.down_inverse[i][j];
    REAL part = i >= low && i < high && j >= low && j <= i ? s.down_inverse[i][j] * s.outside[j] : (REAL)0;
    REAL total = warp_sum(part);
    if (j == 0) exits[row * B + i] = total * s.inverse[i];
}

// Derivatives between the vertices of a block, and what is to be added to its rows. Before: the rows of g hold y up to `start`,
// x is in `columns`, W numbers a row of it. After: g has the rows and the columns of the block.
extern "C" __global__ void bring_back_block(
    const REAL *all_q, REAL *all_g, const REAL *inverses, const REAL *up_inverses, const REAL *down_inverses,
    const REAL *exits, const REAL *z_outs, const REAL *z_ins, const REAL *columns, int start, int low, int high, int P, int W) {
    // rows_in and rows_out: rows of derivatives into and out of a vertex of the block, as far as they are known.
    __shared__ REAL up[B][B + 1], down[B][B + 1], rows_in[B][B + 1], rows_out[B][B + 1], g[B][B + 1];
    __shared__ REAL inverse[B], exit_[B], lift[B], own_in[B];
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
    rows_in[i][j] = rest ? z_ins[row * B * B + i * B + j] : (REAL)0;
    rows_out[i][j] = rest ? z_outs[row * B * B + i * B + j] : (REAL)0;
    g[i][j] = 0;
    if (i == 0) {
        inverse[j] = inverses[row * P + start + j];
        exit_[j] = exits[row * B + j];
        lift[j] = 0;
    }
    __syncthreads();
    REAL in = 0, out = 0;
    if (rest && i >= low && i < high) {
        for (int l = low; l <= i; l++) {
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
    for (int k = high - 1; k >= low; k--) {
        // Every warp finishes row k for itself, and adds it to its own.
        bool later = j > k && j < high;
        REAL to = later ? rows_out[k][j] + exit_[k] * lift[j] : (REAL)0;
        REAL into = later ? down[j][k] : (REAL)0;
        REAL less = warp_sum(into * to);
        REAL carried = warp_sum(into * lift[j]);
        REAL t = inverse[k] - own_in[k] - less;
        REAL from = later ? rows_in[k][j] + t : (REAL)0;
        if (i < k) {
            REAL across_out = warp_sum(up[i][j] * from);
            REAL across_in = warp_sum(later ? down[j][i] * to : (REAL)0);
            if (later) {
                rows_out[i][j] += up[i][k] * to;
                rows_in[i][j] += down[k][i] * from;
            } else if (j == k) {
                rows_out[i][k] += across_out;
                rows_in[i][k] += across_in;
            }
        }
        __syncthreads();
        if (i == k) {
            if (later) {
                g[k][j] = from;
                g[j][k] = to;
            }
            if (j == 0) lift[k] = t + carried;
        }
        __syncthreads();
    }
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
    for (int lane = 16; lane > 0; lane >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, lane);
    trusted = __all_sync(0xffffffffu, trusted);
    if (threadIdx.x == 0) logs[row] = trusted ? sum : nan("");
}

// Rows whose derivatives may be handed on: 1. Time at the root is the largest of them.
extern "C" __global__ void trust_derivatives(const REAL *g, const double *logs, unsigned char *trusted, int size, int P, int rows) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    bool fine = !isnan(logs[row]);
    for (int k = 1 + threadIdx.x; k < size; k += 32) {
        REAL time = g[(long long)row * P * P + (long long)k * P];
        fine = fine && time <= HUGE_;
    }
    fine = __all_sync(0xffffffffu, fine);
    if (threadIdx.x == 0) trusted[row] = fine;
}

// Sums of weighted derivatives by the states they belong to. A thread has one pair of variables and some rows; it alone writes the
// entries of that pair in the table of its chunk of rows. sums is chunks × S × S, zero before. Undirected derivatives are those of both
// directions: the square across the diagonal is read along its rows too, and turned in shared memory.
extern "C" __global__ void tally(
    REAL *sums, const REAL *g, const u16 *states, const REAL *weights, const unsigned char *trusted, const int *offsets,
    int n, int P, int S, int rows, int per_chunk, int directed) {
    __shared__ REAL turned[B][B + 1];
    int u = blockIdx.x * B + threadIdx.x;
    int v = blockIdx.y * B + threadIdx.y;
    // Squares above the diagonal belong to those below it.
    if (!directed && blockIdx.x > blockIdx.y) return;
    bool mine = v < n && u < n && (directed || u < v);
    int first = blockIdx.z * per_chunk;
    int last = min(first + per_chunk, rows);
    REAL *own = sums + (long long)blockIdx.z * S * S;
    int v0 = mine ? offsets[v] : 0, u0 = mine ? offsets[u] : 0;
    bool small = mine && offsets[v + 1] - v0 <= 2 && offsets[u + 1] - u0 <= 2;
    int across = (blockIdx.x * B + threadIdx.y) * P + blockIdx.y * B + threadIdx.x;
    REAL few[4] = {0, 0, 0, 0};
    for (int row = first; row < last; row++) {
        REAL weight = weights[row];
        if (weight == 0 || !trusted[row]) continue;
        const REAL *of_row = g + (long long)row * P * P;
        REAL derivative = 0;
        if (directed) {
            if (mine) derivative = of_row[(long long)(v + 1) * P + (u == v ? 0 : u + 1)];
        } else {
            turned[threadIdx.y][threadIdx.x] = of_row[across];
            __syncthreads();
            if (mine) derivative = of_row[(long long)v * P + u] + turned[threadIdx.x][threadIdx.y];
            __syncthreads();
        }
        if (!mine) continue;
        REAL share = weight * derivative;
        int a = states[(long long)row * n + v], b = states[(long long)row * n + u];
        if (small) {
            int place = (a - v0) * 2 + (b - u0);
            few[0] += place == 0 ? share : (REAL)0;
            few[1] += place == 1 ? share : (REAL)0;
            few[2] += place == 2 ? share : (REAL)0;
            few[3] += place == 3 ? share : (REAL)0;
        } else {
            own[(long long)a * S + b] += share;
        }
    }
    if (small)
        for (int a = v0; a < offsets[v + 1]; a++)
            for (int b = u0; b < offsets[u + 1]; b++) own[(long long)a * S + b] = few[(a - v0) * 2 + (b - u0)];
}

// Adds the tables of all chunks to the first, in order, and makes counts of derivatives: times the rate.
extern "C" __global__ void add_chunks(REAL *sums, const REAL *rates, int entries, int chunks) {
    long long place = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (place >= entries) return;
    REAL sum = sums[place];
    for (int chunk = 1; chunk < chunks; chunk++) sum += sums[(long long)chunk * entries + place];
    sums[place] = sum * rates[place];
}
