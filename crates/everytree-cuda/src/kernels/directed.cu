// The directed family: parameters to weights, tables and rates, and expected counts to derivatives by parameters. All in double; see
// model/directed.rs. Parameters: n × n logarithms of weights, then S × S logits.

// The largest weight of every variable, as a logarithm: one warp each.
extern "C" __global__ void line_maxima(double *most, const double *parameters, int n) {
    int v = blockIdx.x * blockDim.y + threadIdx.y;
    if (v >= n) return;
    double own = -1e308;
    for (int u = threadIdx.x; u < n; u += 32) own = fmax(own, parameters[(long long)v * n + u]);
    for (int lane = 16; lane > 0; lane >>= 1) own = fmax(own, __shfl_xor_sync(ALL, own, lane));
    if (threadIdx.x == 0) most[v] = own;
}

// Weights, tables and rates: one thread a child v and a parent u (u = v: as a root).
extern "C" __global__ void directed_tables(
    REAL *rates, REAL *prior, double *p, const double *parameters, const double *maxima, const int *offsets, int n, int S) {
    int u = blockIdx.x * blockDim.x + threadIdx.x, v = blockIdx.y * blockDim.y + threadIdx.y;
    if (v >= n || u >= n) return;
    double weight = exp(fmax(parameters[(long long)v * n + u] - maxima[v], -300.0));
    prior[(long long)v * n + u] = (REAL)weight;
    const double *logits = parameters + (long long)n * n;
    int v0 = offsets[v], v1 = offsets[v + 1];
    for (int a = offsets[u]; a < offsets[u + 1]; a++) {
        double most = -1e308, sum = 0;
        // Within a variable only the diagonal counts, and the first column stands for all of it.
        if (u == v && a > v0) break;
        for (int b = v0; b < v1; b++) most = fmax(most, logits[(long long)b * S + (u == v ? b : a)]);
        for (int b = v0; b < v1; b++) sum += exp(logits[(long long)b * S + (u == v ? b : a)] - most);
        for (int b = v0; b < v1; b++) {
            long long place = (long long)b * S + (u == v ? b : a);
            double own = exp(logits[place] - most) / sum;
            p[place] = own;
            rates[place] = (REAL)(weight * own);
        }
    }
}

// Derivatives by weights and logits: one thread a child and a parent. `even`: rows of even chance that count in every line.
extern "C" __global__ void directed_gradient(
    double *gradient, const double *counts, const double *p, const REAL *marginals, const double *total, const double *even,
    const int *offsets, int n, int S) {
    int u = blockIdx.x * blockDim.x + threadIdx.x, v = blockIdx.y * blockDim.y + threadIdx.y;
    if (v >= n || u >= n) return;
    double *logits = gradient + (long long)n * n;
    int v0 = offsets[v], v1 = offsets[v + 1];
    double found = 0, smooth = *even, share = 1.0 / (v1 - v0);
    for (int a = offsets[u]; a < offsets[u + 1]; a++) {
        double sum = 0;
        if (u == v && a > v0) break;
        for (int b = v0; b < v1; b++) sum += counts[(long long)b * S + (u == v ? b : a)];
        for (int b = v0; b < v1; b++) {
            long long place = (long long)b * S + (u == v ? b : a);
            logits[place] = counts[place] - p[place] * sum + smooth * (share - p[place]);
        }
        found += sum;
    }
    gradient[(long long)v * n + u] = found - *total * (double)marginals[(long long)v * n + u];
}

// States that were not seen keep the odds they are given; see `hold` of directed.rs. One thread a variable and a column; the first
// column within the variable stands for its diagonal.
extern "C" __global__ void directed_smooth_unseen(
    double *parameters, const double *odds, const u8 *unseen, const int *offsets, const double *doubt, int n, int S) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, v = blockIdx.y;
    if (*doubt != 0 || column >= S || odds[v] == 0) return;
    int v0 = offsets[v], v1 = offsets[v + 1];
    bool root = column >= v0 && column < v1;
    if (root && column > v0) return;
    double *logits = parameters + (long long)n * n;
    double most = -1e308, sum = 0;
    for (int b = v0; b < v1; b++)
        if (!unseen[b]) most = fmax(most, logits[(long long)b * S + (root ? b : column)]);
    for (int b = v0; b < v1; b++)
        if (!unseen[b]) sum += exp(logits[(long long)b * S + (root ? b : column)] - most);
    double held = most + log(sum) + log(odds[v]);
    for (int b = v0; b < v1; b++)
        if (unseen[b]) logits[(long long)b * S + (root ? b : column)] = held;
}
