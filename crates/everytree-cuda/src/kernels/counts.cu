// From derivatives by rates to expected counts of states.

// Sums of weighted derivatives by the states they belong to, of derivatives that lie in memory, P numbers a row. A thread has one pair of
// variables and some rows; it alone writes the entries of that pair in the table of its chunk of rows. sums is chunks × S × S, zero
// before.
extern "C" __global__ void __launch_bounds__(1024) tally(
    REAL *sums, const REAL *g, const u16 *states, const int *places, const REAL *weights, const u8 *trusted, const int *offsets, int n,
    int P, int matrix, int S, int rows, int per_chunk, int directed) {
    int u = blockIdx.x * B + threadIdx.x;
    int v = blockIdx.y * B + threadIdx.y;
    if (v >= n || u >= n || (!directed && u >= v)) return;
    int first = blockIdx.z * per_chunk;
    int last = min(first + per_chunk, rows);
    REAL *own = sums + (long long)blockIdx.z * S * S;
    int v0 = offsets[v], u0 = offsets[u];
    bool small = offsets[v + 1] - v0 <= 2 && offsets[u + 1] - u0 <= 2;
    int at = directed ? (v + 1) * P + (u == v ? 0 : u + 1) : v * P + u;
    REAL few[4] = {0, 0, 0, 0};
    if (small) {
#pragma unroll 8
        for (int row = first; row < last; row++) {
            const u16 *codes = states_of(states, places, row, n);
            REAL weight = weights[row], derivative = g[(long long)row * matrix + at];
            int place = (codes[v] - v0) * 2 + (codes[u] - u0);
            // What cannot be vouched for may be anything.
            REAL share = trusted[row] && weight != 0 ? weight * derivative : (REAL)0;
            few[0] += place == 0 ? share : (REAL)0;
            few[1] += place == 1 ? share : (REAL)0;
            few[2] += place == 2 ? share : (REAL)0;
            few[3] += place == 3 ? share : (REAL)0;
        }
    } else {
        for (int row = first; row < last; row++) {
            REAL weight = weights[row];
            if (weight == 0 || !trusted[row]) continue;
            const u16 *codes = states_of(states, places, row, n);
            own[(long long)codes[v] * S + codes[u]] += weight * g[(long long)row * matrix + at];
        }
    }
    if (small)
        for (int a = v0; a < offsets[v + 1]; a++)
            for (int b = u0; b < offsets[u + 1]; b++) own[(long long)a * S + b] = few[(a - v0) * 2 + (b - u0)];
}

// Adds the tables of all chunks, in order, and makes counts of derivatives: times the rate.
extern "C" __global__ void add_chunks(double *counts, const REAL *sums, const REAL *rates, int entries, int chunks) {
    long long place = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (place >= entries) return;
    REAL sum = 0;
    for (int chunk = 0; chunk < chunks; chunk++) sum += sums[(long long)chunk * entries + place];
    counts[place] += (double)sum * (double)rates[place];
}
