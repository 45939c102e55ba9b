//! How the allocator of the system goes about large lists.

/// Lists up to this are kept by the program when they are freed, and larger ones given back at once.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_LIST: libc::c_int = 1 << 25;
/// So much that is free is kept in all, by each arena.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT: libc::c_int = 1 << 28;

/// Learning frees and makes lists of a few megabytes with every epoch. Given back, each of their pages is cleared by the system when
/// it is touched again.
pub fn keep_lists() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: mallopt sets two thresholds of the allocator, under its own lock, and takes any numbers.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT_LIST);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
    }
}
