//! The Twenty Datasets, and what others have published about them.

/// A dataset, and test log-likelihoods in nats a row.
pub struct Dataset {
    pub name: &'static str,
    pub variables: usize,
    /// MoAT in Table 1 of the paper.
    pub moat: f64,
    /// Hidden Chow–Liu trees, the size chosen on validation rows.
    pub hclt: f64,
    /// Mixtures of trees.
    pub trees: f64,
    /// The best of all published models that normalise exactly, and its name.
    pub best: (f64, &'static str),
}

const fn dataset(
    name: &'static str,
    variables: usize,
    [moat, hclt, trees, best]: [f64; 4],
    model: &'static str,
) -> Dataset {
    Dataset { name, variables, moat, hclt, trees, best: (best, model) }
}

/// By size.
pub const DATASETS: [Dataset; 20] = [
    dataset("nltcs", 16, [-6.07, -5.999, -6.01, -5.97], "CNR"),
    dataset("msnbc", 17, [-6.43, -6.058, -6.07, -6.03], "CNR"),
    dataset("kdd", 64, [-2.13, -2.141, -2.13, -2.07], "MADE"),
    dataset("plants", 69, [-13.50, -14.265, -12.95, -11.99], "XCNet40"),
    dataset("baudio", 100, [-39.03, -39.768, -40.08, -38.95], "MADE"),
    dataset("jester", 100, [-51.65, -52.376, -53.08, -51.29], "LearnPSDD bagged"),
    dataset("bnetflix", 100, [-55.52, -56.248, -56.74, -55.16], "MADE"),
    dataset("accidents", 111, [-31.59, -26.736, -29.63, -26.32], "WinMine BN"),
    dataset("tretail", 135, [-10.81, -10.855, -10.83, -10.72], "LearnPSDD bagged"),
    dataset("pumsb_star", 163, [-29.89, -23.65, -23.71, -21.72], "WinMine BN"),
    dataset("dna", 180, [-87.10, -79.051, -85.14, -79.05], "HCLT"),
    dataset("kosarek", 190, [-10.57, -10.598, -10.62, -10.52], "LearnPSDD bagged"),
    dataset("msweb", 294, [-9.80, -9.906, -9.85, -9.59], "MADE"),
    dataset("book", 500, [-33.46, -33.534, -34.63, -33.46], "MoAT"),
    dataset("tmovie", 500, [-49.37, -50.538, -54.60, -48.70], "MADE"),
    dataset("cwebkb", 839, [-147.70, -150.838, -156.86, -147.70], "MoAT"),
    dataset("cr52", 889, [-84.78, -85.949, -85.90, -82.80], "MADE"),
    dataset("c20ng", 910, [-149.44, -153.644, -154.24, -149.44], "MoAT"),
    dataset("bbc", 1058, [-243.82, -249.049, -261.84, -237.42], "CNet40 bagged"),
    dataset("ad", 1556, [-15.30, -16.064, -16.02, -13.45], "EXPC"),
];
