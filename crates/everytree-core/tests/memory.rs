//! How much memory things take at most, by an allocator that counts. One test, so that nothing else allocates meanwhile.

use everytree_core::blocks::Blocks;
use everytree_core::data::Schema;
use everytree_core::file::{ModelFile, Provenance};
use everytree_core::model::{ComponentShape, Family, Member, Mixture, Pairs};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does the work; numbers are counted beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(now, Relaxed);
        // SAFETY: passed on as it came.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: passed on as it came.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `work` takes at most beyond what is there.
fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.load(Relaxed);
    PEAK.store(before, Relaxed);
    let result = work();
    (result, PEAK.load(Relaxed).saturating_sub(before))
}

#[test]
fn a_model_is_held_once_while_it_is_saved_and_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.everytree");
    let few = vec![2; 900];
    let many = vec![300; 5];
    for (family, pairs, hidden, states) in [
        (Family::Moat, Some(Pairs::Lambda), None, &few),
        (Family::Moat, Some(Pairs::Sinkhorn), None, &many),
        (Family::Directed, None, None, &many),
        (Family::Directed, None, None, &few),
        (Family::ChowLiu, None, None, &many),
        (Family::Hclt, None, Some(64), &vec![20; 300]),
    ] {
        for components in [1, 3] {
            let shape = ComponentShape { pairs, hidden, ..ComponentShape::default() };
            let one = |seed: usize| family.random(states, &shape, seed as u64).unwrap();
            let mixture = Mixture::new((0..components).map(one).collect(), &vec![1.0; components]).unwrap();
            let n = states.len();
            let file = ModelFile {
                model: Member::new(Blocks::none(states), mixture).unwrap().into(),
                schema: Schema::anonymous(states),
                provenance: Provenance::default(),
                edge_posteriors: vec![Some(vec![vec![0.0; n * n]; components])],
            };
            let (saved, saving) = peak(|| file.save(&path));
            saved.unwrap();
            let size = std::fs::metadata(&path).unwrap().len() as usize;
            let (loaded, loading) = peak(|| ModelFile::load(&path));
            assert_eq!(loaded.unwrap(), file);
            let what = format!("{family:?} {pairs:?} of {components}: {size} bytes");
            assert!(2 * loading <= 3 * size, "{what}, {loading} to load it");
            assert!(10 * saving <= size.max(5_000_000), "{what}, {saving} to save it");
            println!(
                "{what}: {:.2} and {:.2} times",
                loading as f64 / size as f64,
                saving as f64 / size as f64
            );
        }
    }
}
