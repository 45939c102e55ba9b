// From derivatives by rates to expected counts of states.

// Sums of weighted derivatives by the states they belong to, of derivatives that lie in memory, P numbers a row. A thread of 32 × 8 has
// four pairs of variables and some rows; it alone writes the entries of these pairs in the table of its chunk of rows. sums is
// chunks × S × S, zero before.
extern "C" __global__ void tally(
    REAL *sums, const REAL *g, const u16 *states, const int *places, const REAL *weights, const u8 *trusted, const int *offsets, int n,
    int P, int matrix, int S, int rows, int per_chunk, int directed) {
    // Above the diagonal there is nothing.
    if (!directed && blockIdx.x > blockIdx.y) return;
    int u = blockIdx.x * B + threadIdx.x;
    if (u >= n) return;
    int first = blockIdx.z * per_chunk;
    int last = min(first + per_chunk, rows);
    REAL *own = sums + (long long)blockIdx.z * S * S;
    int u0 = offsets[u], u_states = offsets[u + 1] - u0;
    int v[4], v0[4], at[4];
    bool mine[4], small = u_states <= 2;
#pragma unroll
    for (int part = 0; part < 4; part++) {
        v[part] = blockIdx.y * B + threadIdx.y + 8 * part;
        mine[part] = v[part] < n && (directed || u < v[part]);
        if (!mine[part]) v[part] = u;
        v0[part] = offsets[v[part]];
        small = small && offsets[v[part] + 1] - v0[part] <= 2;
        at[part] = directed ? (v[part] + 1) * P + (u == v[part] ? 0 : u + 1) : v[part] * P + u;
    }
    REAL few[4][4] = {};
    for (int row = first; row < last; row++) {
        const u16 *codes = states_of(states, places, row, n);
        REAL weight = trusted[row] ? weights[row] : (REAL)0;
        int b = codes[u] - u0;
#pragma unroll
        for (int part = 0; part < 4; part++) {
            int a = codes[v[part]] - v0[part];
            REAL derivative = g[(long long)row * matrix + at[part]];
            // What cannot be vouched for may be anything.
            REAL share = weight != 0 ? weight * derivative : (REAL)0;
            if (small) {
                int place = a * 2 + b;
                few[part][0] += place == 0 ? share : (REAL)0;
                few[part][1] += place == 1 ? share : (REAL)0;
                few[part][2] += place == 2 ? share : (REAL)0;
                few[part][3] += place == 3 ? share : (REAL)0;
            } else if (mine[part]) {
                own[(long long)(v0[part] + a) * S + u0 + b] += share;
            }
        }
    }
    if (!small) return;
#pragma unroll
    for (int part = 0; part < 4; part++) {
        if (!mine[part]) continue;
        int v_states = offsets[v[part] + 1] - v0[part];
        for (int a = 0; a < v_states; a++)
            for (int b = 0; b < u_states; b++) own[(long long)(v0[part] + a) * S + u0 + b] = few[part][a * 2 + b];
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
