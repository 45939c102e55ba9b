// What all kernels share. REAL is float or double, TINY and HUGE_ bound the pivots that are trusted.
//
// Index 0 is the root: vertex 0 of the undirected kind, or the root above all vertices of the directed kind. Nothing is subtracted
// but where the mathematics subtracts.

#define B 32
#define ALL 0xffffffffu

typedef unsigned short u16;
typedef unsigned char u8;

// Sum over the 32 threads of a warp, the same in all of them.
__device__ __forceinline__ REAL warp_sum(REAL x) {
    for (int lane = 16; lane > 0; lane >>= 1) x += __shfl_xor_sync(ALL, x, lane);
    return x;
}

// The states of a row, as places in the tables: rows lie where `places` says, or one after the other.
__device__ __forceinline__ const u16 *states_of(const u16 *states, const int *places, long long row, int n) {
    return states + (places ? (long long)places[row] : row) * n;
}
