// Hidden trees: messages of latent variables as matrices, up and down the tree; see model/trees/latent.rs. Latent variables lie in
// slots, level after level from the roots on, children of one slot one after the other. Of each there is a matrix with a line for
// every row and a column for every state; products of them with tables are matrix products, and here is what lies between.
//
// Lines of tables: those of the n observed variables and then of the n latent ones, `hidden` lines each; the logits of a line lie at
// hidden · offsets[variable] + line · states.

__device__ __forceinline__ double warp_add(double x) {
    for (int lane = 16; lane > 0; lane >>= 1) x += __shfl_xor_sync(ALL, x, lane);
    return x;
}

__device__ __forceinline__ REAL warp_most(REAL x) {
    for (int lane = 16; lane > 0; lane >>= 1) {
        REAL other = __shfl_xor_sync(ALL, x, lane);
        x = other > x ? other : x;
    }
    return x;
}

// The logarithm of what the exponentials of every line add up to. One warp a line.
extern "C" __global__ void hidden_norms(double *norms, const double *logits, const int *offsets, int n, int hidden) {
    int line = blockIdx.x * blockDim.y + threadIdx.y;
    if (line >= 2 * n * hidden) return;
    int v = line / hidden, states = offsets[v + 1] - offsets[v];
    const double *own = logits + (long long)hidden * offsets[v] + (long long)(line % hidden) * states;
    double most = -1e308, sum = 0;
    for (int b = threadIdx.x; b < states; b += 32) most = fmax(most, own[b]);
    for (int lane = 16; lane > 0; lane >>= 1) most = fmax(most, __shfl_xor_sync(ALL, most, lane));
    for (int b = threadIdx.x; b < states; b += 32) sum += exp(own[b] - most);
    sum = warp_add(sum);
    if (threadIdx.x == 0) norms[line] = most + log(sum);
}

// How probable a state of an observed variable is, given each state of the latent one, over the largest of these; and the logarithm of
// that. One warp a state; `owners` are the variables.
extern "C" __global__ void hidden_leaves(
    REAL *leaves, double *leaf_logs, const double *logits, const double *norms, const int *offsets, const int *owners, int total,
    int hidden) {
    int state = blockIdx.x * blockDim.y + threadIdx.y;
    if (state >= total) return;
    int v = owners[state], states = offsets[v + 1] - offsets[v];
    const double *own = logits + (long long)hidden * offsets[v] + (state - offsets[v]);
    double most = -1e308;
    for (int a = threadIdx.x; a < hidden; a += 32) most = fmax(most, own[(long long)a * states] - norms[v * hidden + a]);
    for (int lane = 16; lane > 0; lane >>= 1) most = fmax(most, __shfl_xor_sync(ALL, most, lane));
    for (int a = threadIdx.x; a < hidden; a += 32)
        leaves[(long long)state * hidden + a] = (REAL)exp(own[(long long)a * states] - norms[v * hidden + a] - most);
    if (threadIdx.x == 0) leaf_logs[state] = most;
}

// The tables of the latent variables, slot by slot, a line for every state of the parent. One thread an entry.
extern "C" __global__ void hidden_tables(
    REAL *tables, const double *logits, const double *norms, const int *offsets, const int *variables, int n, int hidden) {
    long long square = (long long)hidden * hidden, place = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= square) return;
    int slot = blockIdx.y, h = n + variables[slot];
    double log = logits[(long long)hidden * offsets[h] + place] - norms[h * hidden + (int)(place / hidden)];
    tables[slot * square + place] = (REAL)exp(log);
}

// What was observed at each latent variable. Thread blocks: rows, slots.
extern "C" __global__ void hidden_begin(
    REAL *up, double *scales, const REAL *leaves, const double *leaf_logs, const u16 *states, const int *places, const int *variables,
    int n, int hidden, int rows) {
    int row = blockIdx.x * blockDim.y + threadIdx.y, slot = blockIdx.y;
    if (row >= rows) return;
    int state = states_of(states, places, row, n)[variables[slot]];
    long long own = (long long)slot * rows + row;
    for (int a = threadIdx.x; a < hidden; a += 32) up[own * hidden + a] = leaves[(long long)state * hidden + a];
    if (threadIdx.x == 0) scales[own] = leaf_logs[state];
}

// Messages of the children, one after the other, into those of their parents; small numbers are scaled up. One warp a row of a slot.
extern "C" __global__ void hidden_absorb(
    REAL *up, double *scales, const REAL *told, const int *children, int first, int hidden, int rows) {
    int row = blockIdx.x * blockDim.y + threadIdx.y, slot = first + blockIdx.y;
    if (row >= rows) return;
    long long own = (long long)slot * rows + row;
    REAL *line = up + own * hidden;
    double scale = 0;
    for (int child = children[slot]; child < children[slot + 1]; child++) {
        const REAL *message = told + ((long long)child * rows + row) * hidden;
        REAL most = 0;
        for (int a = threadIdx.x; a < hidden; a += 32) {
            REAL product = line[a] * message[a];
            line[a] = product;
            most = product > most || isnan(product) ? product : most;
        }
        most = warp_most(most);
        if (!(most >= (REAL)1e-12)) {
            if (most > 0)
                for (int a = threadIdx.x; a < hidden; a += 32) line[a] /= most;
            scale += log((double)most);
        }
    }
    if (threadIdx.x == 0) scales[own] += scale;
}

// The logarithm of the probability of every row, not a number where that cannot be vouched for; with weights also each row's share at
// every root, over all. One warp a row.
extern "C" __global__ void hidden_roots(
    double *logs, REAL *shares, double *doubt, const REAL *up, const double *scales, const REAL *tables, const double *weights,
    int roots, int n, int hidden, int rows) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    double log_p = 0;
    for (int slot = threadIdx.x; slot < n; slot += 32) log_p += scales[(long long)slot * rows + row];
    log_p = warp_add(log_p);
    bool fine = true;
    for (int root = 0; root < roots; root++) {
        const REAL *line = up + ((long long)root * rows + row) * hidden, *table = tables + (long long)root * hidden * hidden;
        REAL sum = 0;
        for (int a = threadIdx.x; a < hidden; a += 32) sum += table[a] * line[a];
        sum = warp_sum(sum);
        fine = fine && sum > (REAL)TINY;
        log_p += log((double)sum);
        if (shares && threadIdx.x == 0) shares[(long long)root * rows + row] = (REAL)(weights[row] / (double)sum);
    }
    if (threadIdx.x > 0) return;
    logs[row] = fine ? log_p : 0.0 / 0.0;
    if (doubt && weights[row] != 0 && !(fine && isfinite(log_p))) *doubt = 1;
}

// What comes to the roots from above, times the weights of the rows; and what their tables are counted with: they have one line. A
// posterior is what comes from above times what comes from below. Thread blocks: rows, roots.
extern "C" __global__ void hidden_root_shares(
    REAL *above, REAL *told, const REAL *tables, const REAL *shares, int hidden, int rows) {
    int row = blockIdx.x * blockDim.y + threadIdx.y, root = blockIdx.y;
    if (row >= rows) return;
    long long own = (long long)root * rows + row;
    REAL share = shares[own];
    const REAL *table = tables + (long long)root * hidden * hidden;
    for (int a = threadIdx.x; a < hidden; a += 32) {
        above[own * hidden + a] = share * table[a];
        told[own * hidden + a] = a == 0 ? share : (REAL)0;
    }
}

// The posterior of the parent over what it was told. Thread blocks: rows, slots from `first` on.
extern "C" __global__ void hidden_shares(
    REAL *told, const REAL *above, const REAL *up, const int *parents, int first, int hidden, int rows) {
    int row = blockIdx.x * blockDim.y + threadIdx.y, slot = first + blockIdx.y;
    if (row >= rows) return;
    REAL *line = told + ((long long)slot * rows + row) * hidden;
    long long parent = ((long long)parents[slot] * rows + row) * hidden;
    for (int a = threadIdx.x; a < hidden; a += 32)
        line[a] = line[a] > (REAL)TINY ? above[parent + a] * up[parent + a] / line[a] : (REAL)0;
}

// Expected counts of the states of observed variables with those of latent ones. Thread blocks of 32 latent states and LEAF_ROWS groups of
// rows, whose sums are added in order; slots. Rows are gone through once for every LEAF_STATES states.
#define LEAF_ROWS 8
#define LEAF_STATES 8
extern "C" __global__ void hidden_leaf_counts(
    double *sums, const REAL *above, const REAL *up, const u16 *states, const int *places, const int *offsets, const int *variables,
    int n, int hidden, int rows) {
    __shared__ double parts[LEAF_ROWS][32];
    int a = blockIdx.x * 32 + threadIdx.x, slot = blockIdx.y, v = variables[slot];
    long long first = (long long)slot * rows * hidden + a;
    for (int state = offsets[v]; state < offsets[v + 1]; state += LEAF_STATES) {
        double own[LEAF_STATES] = {};
        if (a < hidden)
            for (int row = threadIdx.y; row < rows; row += LEAF_ROWS) {
                int seen = states_of(states, places, row, n)[v] - state;
                if (seen < 0 || seen >= LEAF_STATES) continue;
                long long place = first + (long long)row * hidden;
                double posterior = (double)(above[place] * up[place]);
                #pragma unroll
                for (int s = 0; s < LEAF_STATES; s++) own[s] += seen == s ? posterior : 0.0;
            }
        #pragma unroll
        for (int s = 0; s < LEAF_STATES; s++) {
            if (state + s >= offsets[v + 1]) break;
            parts[threadIdx.y][threadIdx.x] = own[s];
            __syncthreads();
            if (threadIdx.y == 0 && a < hidden) {
                double sum = 0;
                for (int part = 0; part < LEAF_ROWS; part++) sum += parts[part][threadIdx.x];
                sums[(long long)(state + s) * hidden + a] += sum;
            }
            __syncthreads();
        }
    }
}

// Derivatives by the logits, from expected counts: one warp a line. `even`: rows of even chance that count in every line.
extern "C" __global__ void hidden_gradient(
    double *gradient, const double *logits, const double *norms, const double *leaf_sums, const REAL *sums, const REAL *tables,
    const double *even, const int *offsets, const int *slots, int n, int roots, int hidden) {
    int line = blockIdx.x * blockDim.y + threadIdx.y;
    if (line >= 2 * n * hidden) return;
    int v = line / hidden, a = line % hidden, states = offsets[v + 1] - offsets[v];
    long long place = (long long)hidden * offsets[v] + (long long)a * states;
    bool leaf = v < n;
    int slot = leaf ? 0 : slots[v - n];
    // The table of a root has one line.
    bool used = leaf || a == 0 || slot >= roots;
    long long table = (long long)slot * hidden * hidden + (long long)a * hidden;
    double sum = 0, smooth = used ? *even : 0.0, norm = norms[line];
    for (int b = threadIdx.x; b < states; b += 32)
        sum += leaf ? leaf_sums[(long long)(offsets[v] + b) * hidden + a] : (double)(sums[table + b] * tables[table + b]);
    sum = warp_add(sum);
    for (int b = threadIdx.x; b < states; b += 32) {
        double count = leaf ? leaf_sums[(long long)(offsets[v] + b) * hidden + a] : (double)(sums[table + b] * tables[table + b]);
        double p = exp(logits[place + b] - norm);
        gradient[place + b] = count - sum * p + smooth * (1.0 / states - p);
    }
}

// States that were not seen keep the odds they are given. One thread a line of an observed variable.
extern "C" __global__ void hidden_smooth_unseen(
    double *logits, const double *odds, const u8 *unseen, const int *offsets, const double *doubt, int n, int hidden) {
    int line = blockIdx.x * blockDim.x + threadIdx.x;
    if (*doubt != 0 || line >= n * hidden) return;
    int v = line / hidden, first = offsets[v], states = offsets[v + 1] - first;
    if (odds[v] == 0) return;
    double *own = logits + (long long)hidden * first + (long long)(line % hidden) * states;
    double most = -1e308, sum = 0;
    for (int b = 0; b < states; b++)
        if (!unseen[first + b]) most = fmax(most, own[b]);
    for (int b = 0; b < states; b++)
        if (!unseen[first + b]) sum += exp(own[b] - most);
    double held = most + log(sum) + log(odds[v]);
    for (int b = 0; b < states; b++)
        if (unseen[first + b]) own[b] = held;
}
