// What a step does beside its families: likelihoods of rows under a mixture, responsibilities, and Adam. All in double.
//
// `told` is what the host hears of a step: doubt (anything but zero: nothing has changed, the host must look itself), the weighted
// log-likelihood, and from SHARES on the weight of every component.
#define DOUBT 0
#define LIKELIHOOD 1
#define SHARES 2
// Responsibilities below this count as none, as in mixture.rs.
#define LEAST_RESPONSIBILITY 1e-5

// log π p(row) of one component: forest over that of the weights, and margins where there are any. One warp a row.
extern "C" __global__ void row_likelihoods(
    double *joint, const double *logs, const double *log_prior, const double *log_p, const double *log_weight, const u16 *states,
    const int *places, int n, int rows) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    double sum = 0;
    if (log_p) {
        const u16 *own = states_of(states, places, row, n);
        for (int v = threadIdx.x; v < n; v += 32) sum += log_p[own[v]];
        for (int lane = 16; lane > 0; lane >>= 1) sum += __shfl_xor_sync(ALL, sum, lane);
    }
    if (threadIdx.x == 0) joint[row] = logs[row] - *log_prior + sum + *log_weight;
}

// The logarithms of shares, which add up to 1, from those up to a factor. One thread.
extern "C" __global__ void normalise_weights(double *log_weights, const double *parameters, int components) {
    double most = -1e308, sum = 0;
    for (int k = 0; k < components; k++) most = fmax(most, parameters[k]);
    for (int k = 0; k < components; k++) sum += exp(parameters[k] - most);
    for (int k = 0; k < components; k++) log_weights[k] = parameters[k] - most - log(sum);
}

// The log-likelihood of every row, and what of its weight belongs to each component. joint and parts: components × rows.
extern "C" __global__ void responsibilities(
    double *likelihoods, REAL *parts, const double *joint, const double *weights, int components, int rows, int stride) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    double most = -1.0 / 0.0, sum = 0;
    for (int k = 0; k < components; k++) {
        double log = joint[(long long)k * stride + row];
        // What is not a number is to be seen.
        most = log > most || isnan(log) ? log : most;
    }
    for (int k = 0; k < components; k++) sum += exp(joint[(long long)k * stride + row] - most);
    double log_sum = components == 1 ? most : most + log(sum);
    likelihoods[row] = log_sum;
    if (!parts) return;
    for (int k = 0; k < components; k++) {
        double share = components == 1 ? 1.0 : exp(joint[(long long)k * stride + row] - log_sum);
        parts[(long long)k * stride + row] = share < LEAST_RESPONSIBILITY ? (REAL)0 : (REAL)(weights[row] * share);
    }
}

// The weights of rows that all belong to one component.
extern "C" __global__ void whole_parts(REAL *parts, const double *weights, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) parts[row] = (REAL)weights[row];
}

// Sums over the rows of a chunk, in one order: their weighted log-likelihood and the weight of every component; doubt where something is
// not a number. One thread block of 256.
extern "C" __global__ void add_rows(
    double *told, const double *likelihoods, const double *weights, const REAL *parts, int components, int rows, int stride) {
    __shared__ double sums[256];
    for (int k = -1; k < components; k++) {
        double sum = 0;
        for (int row = threadIdx.x; row < rows; row += 256)
            sum += k < 0 ? likelihoods[row] * weights[row] : (double)parts[(long long)k * stride + row];
        sums[threadIdx.x] = sum;
        __syncthreads();
        for (int half = 128; half > 0; half >>= 1) {
            if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
            __syncthreads();
        }
        if (threadIdx.x == 0) {
            if (!isfinite(sums[0])) told[DOUBT] = 1;
            told[k < 0 ? LIKELIHOOD : SHARES + k] += sums[0];
        }
        __syncthreads();
    }
}

// Doubt where a row that counts could not be vouched for; the prior always counts.
extern "C" __global__ void doubt_rows(double *told, const u8 *trusted, const REAL *parts, int rows, int prior) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows + prior) return;
    if (!trusted[row] && (row >= rows || parts[row] != 0)) told[DOUBT] = 1;
}

// The log F of the weights, which stands behind those of the rows. One thread.
extern "C" __global__ void keep_prior(double *log_prior, const double *logs, double *told, int row) {
    *log_prior = logs[row];
    if (isnan(*log_prior)) told[DOUBT] = 1;
}

// Derivatives by the logarithms of the shares. One thread.
extern "C" __global__ void weights_gradient(double *gradient, const double *told, const double *log_weights, int components) {
    double total = 0;
    for (int k = 0; k < components; k++) total += told[SHARES + k];
    for (int k = 0; k < components; k++) gradient[k] = told[SHARES + k] - total * exp(log_weights[k]);
}

// Components are drawn towards their mean.
extern "C" __global__ void shrink(double *gradient, const double *parameters, const double *strength, int size, int components) {
    int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= size) return;
    double mean = 0;
    for (int k = 0; k < components; k++) mean += parameters[(long long)k * size + place] / components;
    for (int k = 0; k < components; k++)
        gradient[(long long)k * size + place] -= *strength * (parameters[(long long)k * size + place] - mean);
}

// Doubt where a derivative is not finite.
extern "C" __global__ void doubt_gradient(double *told, const double *gradient, int size) {
    int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place < size && !isfinite(gradient[place])) told[DOUBT] = 1;
}

// A step uphill, as in adam.rs. how: scale, rate, both corrections, decay of the average (or none, below zero).
extern "C" __global__ void adam(
    double *parameters, double *means, double *squares, const double *gradient, const double *how, const double *told, int size) {
    int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= size || told[DOUBT] != 0) return;
    double slope = gradient[place] * how[0];
    double mean = 0.9 * means[place] + (1 - 0.9) * slope;
    double square = 0.999 * squares[place] + (1 - 0.999) * slope * slope;
    means[place] = mean;
    squares[place] = square;
    parameters[place] += how[1] * (mean / how[2]) / (sqrt(square / how[3]) + 1e-8);
}

// The average of the parameters goes after them.
extern "C" __global__ void follow(double *average, const double *parameters, const double *how, const double *told, int size) {
    int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= size || told[DOUBT] != 0) return;
    average[place] += (1 - how[4]) * (parameters[place] - average[place]);
}
