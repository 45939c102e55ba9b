// From derivatives by rates to expected counts of states.

// Sums of weighted derivatives by the states they belong to, of derivatives that lie in memory, P numbers a row. A thread has four pairs
// of variables, with one of them in common, and some rows; it alone writes the entries of these pairs in the table of its chunk of rows.
// sums is chunks × S × S, zero before. 32 × 8 threads.
extern "C" __global__ void __launch_bounds__(256) tally(
    REAL *sums, const REAL *g, const u16 *states, const int *places, const REAL *weights, const u8 *trusted, const int *offsets, int n,
    int P, int matrix, int S, int rows, int per_chunk, int directed) {
    int u = blockIdx.x * B + threadIdx.x;
    int first_v = blockIdx.y * B + threadIdx.y * 4;
    if (u >= n || first_v >= n || (!directed && u >= first_v + 3)) return;
    int first = blockIdx.z * per_chunk;
    int last = min(first + per_chunk, rows);
    REAL *own = sums + (long long)blockIdx.z * S * S;
    int u0 = offsets[u], at[4], v0[4];
    bool any[4], few = offsets[u + 1] - u0 <= 2;
#pragma unroll
    for (int m = 0; m < 4; m++) {
        int v = first_v + m;
        any[m] = v < n && (directed || u < v);
        v0[m] = v < n ? offsets[v] : 0;
        at[m] = directed ? (v + 1) * P + (u == v ? 0 : u + 1) : v * P + u;
        few = few && (v >= n || offsets[v + 1] - v0[m] <= 2);
    }
    if (few) {
        REAL found[4][4] = {};
#pragma unroll 4
        for (int row = first; row < last; row++) {
            const u16 *codes = states_of(states, places, row, n);
            // What cannot be vouched for may be anything.
            REAL weight = trusted[row] ? weights[row] : (REAL)0;
            bool of_u = codes[u] != u0;
#pragma unroll
            for (int m = 0; m < 4; m++) {
                REAL derivative = any[m] ? g[(long long)row * matrix + at[m]] : (REAL)0;
                REAL share = weight != 0 ? weight * derivative : (REAL)0;
                REAL zero = of_u ? (REAL)0 : share, one = of_u ? share : (REAL)0;
                bool of_v = any[m] && codes[first_v + m] != v0[m];
                found[m][0] += of_v ? (REAL)0 : zero;
                found[m][1] += of_v ? (REAL)0 : one;
                found[m][2] += of_v ? zero : (REAL)0;
                found[m][3] += of_v ? one : (REAL)0;
            }
        }
#pragma unroll
        for (int m = 0; m < 4; m++) {
            if (!any[m]) continue;
#pragma unroll
            for (int place = 0; place < 4; place++) {
                int a = v0[m] + place / 2, b = u0 + place % 2;
                if (a < offsets[first_v + m + 1] && b < offsets[u + 1]) own[(long long)a * S + b] = found[m][place];
            }
        }
        return;
    }
    for (int row = first; row < last; row++) {
        REAL weight = weights[row];
        if (weight == 0 || !trusted[row]) continue;
        const u16 *codes = states_of(states, places, row, n);
#pragma unroll
        for (int m = 0; m < 4; m++)
            if (any[m]) own[(long long)codes[first_v + m] * S + codes[u]] += weight * g[(long long)row * matrix + at[m]];
    }
}

// Adds the tables of all chunks, in order, and makes counts of derivatives: times the rate.
extern "C" __global__ void add_chunks(double *counts, const REAL *sums, const REAL *rates, int entries, int chunks) {
    long long place = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (place >= entries) return;
    REAL sum = 0;
    for (int chunk = 0; chunk < chunks; chunk++) sum += sums[(long long)chunk * entries + place];
    counts[place] += (double)sum * (double)rates[place];
}
