// The paper's family: parameters to margins, weights and rates, and expected counts to derivatives by parameters. All in double, whatever
// the rates are summed in; the formulas are those of frechet.rs, pair.rs and pair/lambda.rs.

__device__ double sigmoid(double x) { return 1 / (1 + exp(-x)); }

// A variable of two states by its logit.
struct Binary {
    double alpha, p[2];
    __device__ Binary(double logit) {
        alpha = fmin(fmax(logit, -700.0), 700.0);
        p[0] = sigmoid(-alpha);
        p[1] = sigmoid(alpha);
    }
};

// Two binary variables, the second given at a fraction of the interval that their margins allow.
struct Frechet {
    Binary u, v;
    double fraction[2], width, joint[2][2];
    __device__ Frechet(Binary u, Binary v, double beta) : u(u), v(v) {
        beta = fmin(fmax(beta, -700.0), 700.0);
        fraction[0] = sigmoid(-beta);
        fraction[1] = sigmoid(beta);
        width = fmin(fmin(u.p[0], u.p[1]), fmin(v.p[0], v.p[1]));
        joint[0][0] = joint[1][1] = fraction[1] * width;
        joint[0][1] = joint[1][0] = fraction[0] * width;
        // σ(a) − σ(b) = σ(a) σ(−b) (1 − e^{b−a})
        double sum = u.alpha + v.alpha, difference = u.alpha - v.alpha;
        int same = sum > 0, first = difference > 0;
        joint[same][same] += u.p[same] * v.p[same] * -expm1(-fabs(sum));
        joint[first][1 - first] += u.p[first] * v.p[1 - first] * -expm1(-fabs(difference));
    }
    // Derivatives of Σ counts[a][b] log P(a, b) by the two logits and by beta.
    __device__ void gradient(const double counts[2][2], double &alpha_u, double &alpha_v, double &beta) const {
        double by_u = 0, by_v = 0;
        if (u.p[1] == width) by_u = 1;
        else if (u.p[0] == width) by_u = -1;
        else if (v.p[1] == width) by_v = 1;
        else by_v = -1;
        double sum = u.alpha + v.alpha, difference = u.alpha - v.alpha;
        alpha_u = alpha_v = beta = 0;
        for (int a = 0; a < 2; a++)
            for (int b = 0; b < 2; b++) {
                double per = joint[a][b] > 0 ? counts[a][b] / joint[a][b] : 0;
                double part = fraction[a == b];
                bool excess = a == b ? (a ? sum > 0 : sum < 0) : (a ? difference > 0 : difference < 0);
                alpha_u += per * ((excess ? (a ? 1.0 : -1.0) : 0.0) + part * by_u);
                alpha_v += per * ((excess ? (b ? 1.0 : -1.0) : 0.0) + part * by_v);
                beta += (a == b ? 1.0 : -1.0) * per * (part * width) * (1 - part);
            }
        alpha_u *= u.p[0] * u.p[1];
        alpha_v *= v.p[0] * v.p[1];
    }
};

// Probabilities of every state, their logarithms, their sums up to and with a state, and the logit of a state against all before it.
// One thread a variable.
extern "C" __global__ void moat_margins(
    double *p, double *log_p, double *prefix, double *alpha, const double *parameters, const int *offsets, const int *logits_at, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int first = offsets[v], states = offsets[v + 1] - first;
    const double *logits = parameters + logits_at[v];
    if (states == 1) {
        p[first] = prefix[first] = 1;
        log_p[first] = alpha[first] = 0;
    } else if (states == 2) {
        Binary step(logits[0]);
        for (int a = 0; a < 2; a++) {
            p[first + a] = step.p[a];
            log_p[first + a] = log(step.p[a]);
            alpha[first + a] = step.alpha;
        }
        prefix[first] = step.p[0];
        prefix[first + 1] = 1;
    } else {
        double most = logits[0], sum = 0;
        for (int a = 1; a < states; a++) most = fmax(most, logits[a]);
        for (int a = 0; a < states; a++) sum += exp(fmax(logits[a] - most, -700.0));
        double log_sum = log(sum), before = 0;
        for (int a = 0; a < states; a++) {
            double own = fmax(logits[a] - most, -700.0) - log_sum;
            log_p[first + a] = own;
            p[first + a] = exp(own);
            alpha[first + a] = a == 0 ? 0 : own - log(before);
            before += p[first + a];
            prefix[first + a] = before;
        }
    }
}

// The largest of many numbers: one for every thread block of 1024.
extern "C" __global__ void maxima(double *out, const double *numbers, int count) {
    __shared__ double most[32];
    double own = -1e308;
#pragma unroll 4
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) own = fmax(own, numbers[i]);
    for (int lane = 16; lane > 0; lane >>= 1) own = fmax(own, __shfl_xor_sync(ALL, own, lane));
    if ((threadIdx.x & 31) == 0) most[threadIdx.x >> 5] = own;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < 32; warp++) own = fmax(own, most[warp]);
        out[blockIdx.x] = own;
    }
}

// Weights of the edges, and rates of all pairs of states: one thread a pair of variables, u < v.
extern "C" __global__ void moat_tables(
    REAL *rates, REAL *prior, const double *parameters, const double *maxima, const double *p, const double *prefix, const double *alpha,
    const int *offsets, const int *pairs_at, int n, int S, int parts) {
    int u = blockIdx.x * blockDim.x + threadIdx.x, v = blockIdx.y * blockDim.y + threadIdx.y;
    if (v >= n || u >= v) return;
    double most = maxima[0];
    for (int part = 1; part < parts; part++) most = fmax(most, maxima[part]);
    int edge = v * (v - 1) / 2 + u;
    double weight = exp(fmax(parameters[edge] - most, -600.0));
    prior[(long long)v * n + u] = (REAL)weight;
    const double *betas = parameters + pairs_at[edge];
    int u0 = offsets[u], v0 = offsets[v], k_u = offsets[u + 1] - u0, k_v = offsets[v + 1] - v0;
    int least = min(k_u, k_v), more_u = k_u - least, more_v = k_v - least;
    // Levels from the last to the first; what lies below a level has its share of the product so far.
    double inside = weight;
    for (int m = least - 1; m >= 0; m--) {
        int i_at = more_u + m, j_at = more_v + m;
        if (m == 0) {
            double ratio = inside / prefix[u0 + more_u] / prefix[v0 + more_v];
            for (int i = 0; i <= more_u; i++)
                for (int j = 0; j <= more_v; j++) rates[(long long)(v0 + j) * S + u0 + i] = (REAL)ratio;
            break;
        }
        Frechet table(Binary(alpha[u0 + i_at]), Binary(alpha[v0 + j_at]), betas[m - 1]);
        double before_u = prefix[u0 + i_at - 1], before_v = prefix[v0 + j_at - 1];
        rates[(long long)(v0 + j_at) * S + u0 + i_at] = (REAL)(inside * table.joint[1][1] / p[u0 + i_at] / p[v0 + j_at]);
        REAL ratio = (REAL)(inside * table.joint[1][0] / p[u0 + i_at] / before_v);
        for (int j = 0; j < j_at; j++) rates[(long long)(v0 + j) * S + u0 + i_at] = ratio;
        ratio = (REAL)(inside * table.joint[0][1] / before_u / p[v0 + j_at]);
        for (int i = 0; i < i_at; i++) rates[(long long)(v0 + j_at) * S + u0 + i] = ratio;
        inside *= table.joint[0][0];
    }
}

// Derivatives by the weight and the parameters of every pair; what each pair says about the logarithms of its margins, in `passed`:
// S × n, the other variable's column. `over` is as large, and for pairs of more than two states only. One thread a pair of variables.
extern "C" __global__ void moat_gradient(
    double *gradient, double *passed, double *over, const double *counts, const double *parameters, const REAL *marginals,
    const double *total, const double *p, const double *prefix, const double *alpha, const int *offsets, const int *pairs_at, int n,
    int S) {
    int u = blockIdx.x * blockDim.x + threadIdx.x, v = blockIdx.y * blockDim.y + threadIdx.y;
    if (v >= n || u >= v) return;
    int edge = v * (v - 1) / 2 + u;
    int u0 = offsets[u], v0 = offsets[v], k_u = offsets[u + 1] - u0, k_v = offsets[v + 1] - v0;
    const double *betas = parameters + pairs_at[edge];
    double *by_betas = gradient + pairs_at[edge];
    double expected = 0;
#define COUNT(i, j) counts[(long long)(v0 + (j)) * S + u0 + (i)]
#define BY_U(i) passed[(long long)(u0 + (i)) * n + v]
#define BY_V(j) passed[(long long)(v0 + (j)) * n + u]
    if (k_u == 2 && k_v == 2) {
        double found[2][2] = {{COUNT(0, 0), COUNT(0, 1)}, {COUNT(1, 0), COUNT(1, 1)}};
        expected = (found[0][0] + found[1][0]) + (found[0][1] + found[1][1]);
        double alpha_u, alpha_v;
        Frechet(Binary(alpha[u0 + 1]), Binary(alpha[v0 + 1]), betas[0]).gradient(found, alpha_u, alpha_v, by_betas[0]);
        BY_U(0) = -(found[0][0] + found[0][1]) - alpha_u;
        BY_U(1) = -(found[1][0] + found[1][1]) + alpha_u;
        BY_V(0) = -(found[0][0] + found[1][0]) - alpha_v;
        BY_V(1) = -(found[0][1] + found[1][1]) + alpha_v;
    } else {
#define OVER_U(end) over[(long long)(u0 + (end) - 1) * n + v]
#define OVER_V(end) over[(long long)(v0 + (end) - 1) * n + u]
        int least = min(k_u, k_v), more_u = k_u - least, more_v = k_v - least;
        for (int i = 0; i < k_u; i++) BY_U(i) = OVER_U(i + 1) = 0;
        for (int j = 0; j < k_v; j++) BY_V(j) = OVER_V(j + 1) = 0;
        double before = 0;
        for (int m = 0; m < least; m++) {
            // Entries of this level: its state of u with all of v up to it, and the other way round.
            double found[2][2] = {{0, 0}, {0, 0}};
            int i_end = more_u + m, j_end = more_v + m;
            for (int i = 0; i <= i_end; i++)
                for (int j = 0; j <= j_end; j++) {
                    int at_u = m > 0 && i == i_end, at_v = m > 0 && j == j_end;
                    if (m > 0 && !at_u && !at_v) continue;
                    double count = COUNT(i, j);
                    found[at_u][at_v] += count;
                    expected += count;
                    // z has both margins below the line: what is at the level takes its own away.
                    if (at_u) BY_U(i) -= count;
                    if (at_v) BY_V(j) -= count;
                    if (!at_u) OVER_U(m > 0 ? i_end : i_end + 1) += count;
                    if (!at_v) OVER_V(m > 0 ? j_end : j_end + 1) += count;
                }
            if (m == 0) {
                before = found[0][0];
                continue;
            }
            found[0][0] = before;
            before += found[0][1] + found[1][0] + found[1][1];
            double alpha_u, alpha_v;
            Frechet(Binary(alpha[u0 + i_end]), Binary(alpha[v0 + j_end]), betas[m - 1])
                .gradient(found, alpha_u, alpha_v, by_betas[m - 1]);
            // alpha = log P(state) − log P(before)
            BY_U(i_end) += alpha_u;
            OVER_U(i_end) += alpha_u;
            BY_V(j_end) += alpha_v;
            OVER_V(j_end) += alpha_v;
        }
        double sum = 0;
        for (int i = k_u - 1; i >= 0; i--) {
            sum += OVER_U(i + 1) / prefix[u0 + i];
            BY_U(i) -= p[u0 + i] * sum;
        }
        sum = 0;
        for (int j = k_v - 1; j >= 0; j--) {
            sum += OVER_V(j + 1) / prefix[v0 + j];
            BY_V(j) -= p[v0 + j] * sum;
        }
    }
    gradient[edge] = expected - *total * (double)marginals[(long long)v * n + u];
}

// Derivatives by the logits of the margins: what all pairs say, and the rows themselves. One thread block of 128 a variable.
extern "C" __global__ void moat_logits(
    double *gradient, double *by_log_p, const double *passed, const double *singles, const double *p, const int *offsets,
    const int *logits_at, int n) {
    __shared__ double parts[4];
    int v = blockIdx.x, first = offsets[v], states = offsets[v + 1] - first;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int a = first; a < first + states; a++) {
        double sum = 0;
        for (int u = threadIdx.x; u < n; u += blockDim.x)
            if (u != v) sum += passed[(long long)a * n + u];
        for (int other = 16; other > 0; other >>= 1) sum += __shfl_xor_sync(ALL, sum, other);
        if (lane == 0) parts[warp] = sum;
        __syncthreads();
        if (threadIdx.x == 0) by_log_p[a] = singles[a] + ((parts[0] + parts[1]) + (parts[2] + parts[3]));
        __syncthreads();
    }
    if (threadIdx.x != 0) return;
    double *logits = gradient + logits_at[v];
    if (states == 2) {
        logits[0] = by_log_p[first + 1] * p[first] - by_log_p[first] * p[first + 1];
    } else if (states > 2) {
        double total = 0;
        for (int a = first; a < first + states; a++) total += by_log_p[a];
        for (int a = 0; a < states; a++) logits[a] = by_log_p[first + a] - p[first + a] * total;
    }
}

// The weight of the rows that show each state; one warp a variable, whose states are counted one after the other.
extern "C" __global__ void count_states(
    double *singles, const REAL *weights, const u16 *states, const int *places, const int *offsets, int n, int rows) {
    int v = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (v >= n) return;
    for (int a = offsets[v]; a < offsets[v + 1]; a++) {
        double sum = 0;
        for (int row = lane; row < rows; row += 32)
            if (states_of(states, places, row, n)[v] == a) sum += (double)weights[row];
        for (int other = 16; other > 0; other >>= 1) sum += __shfl_xor_sync(ALL, sum, other);
        if (lane == 0) singles[a] += sum;
    }
}

// States that were not seen keep the odds they are given; see `hold` of moat.rs. One thread a variable; no odds: nothing to hold.
extern "C" __global__ void moat_smooth_unseen(
    double *parameters, const double *odds, const u8 *unseen, const int *offsets, const int *logits_at, const double *doubt, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (*doubt != 0 || v >= n || odds[v] == 0) return;
    int first = offsets[v], states = offsets[v + 1] - first;
    double *logits = parameters + logits_at[v];
    if (states == 2) {
        // One of the two has been seen.
        logits[0] = unseen[first] ? -log(odds[v]) : log(odds[v]);
        return;
    }
    double most = -1e308, sum = 0, rest = 0;
    for (int a = 0; a < states; a++) most = fmax(most, logits[a]);
    for (int a = 0; a < states; a++) sum += exp(fmax(logits[a] - most, -700.0));
    for (int a = 0; a < states; a++)
        if (!unseen[first + a]) rest += exp(fmax(logits[a] - most, -700.0)) / sum;
    for (int a = 0; a < states; a++)
        logits[a] = unseen[first + a] ? log(rest * odds[v]) : fmax(logits[a] - most, -700.0) - log(sum);
}
