//! What `Fit::new()` comes to on real tables, beside a Chow–Liu tree and beside the best single family that was known when this was
//! written (`experiments/results/defaults.csv`). The tables are not part of the project: they are looked for in `../shared` beside
//! the repository, or where `EVERYTREE_SHARED` says.

use everytree::{Fit, ReadOptions, Unknown};
use everytree_read::Source;
use std::path::{Path, PathBuf};

fn shared() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("EVERYTREE_SHARED").map_or_else(beside, PathBuf::from);
    folder.is_dir().then_some(folder)
}

/// The mean of the differences of rows, and its standard error.
fn gain(of: &[f64], over: &[f64]) -> (f64, f64) {
    let differences: Vec<f64> = of.iter().zip(over).map(|(of, over)| of - over).collect();
    let rows = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / rows;
    let squares: f64 = differences.iter().map(|difference| (difference - mean).powi(2)).sum();
    (mean, (squares / (rows - 1.0) / rows).sqrt())
}

fn check(files: &[PathBuf], best: f64) {
    let Some((test, others)) = files.split_last() else { panic!("no files") };
    let sources: Vec<Source<'_>> = others.iter().map(|file| Source::from(file.as_path())).collect();
    let mut datasets = ReadOptions::default().open_all(&sources, sources.len()).unwrap().datasets.into_iter();
    let train = datasets.next().unwrap();
    let fit = datasets.next().map_or_else(Fit::new, |valid| Fit::new().valid(valid));
    let name = files[0].display();
    let logs = |fit: Fit| -> Vec<f64> {
        let model = fit.without_edges().run(&train).unwrap();
        let scoring = model.scoring().missing_as_state(true).unknown(Unknown::Unobserved);
        let mut logs = Vec::new();
        scoring
            .stream(test.as_path(), &mut |score| {
                logs.push(score.value);
                Ok(())
            })
            .unwrap();
        logs
    };
    let (chosen, tree) = (logs(fit.clone()), logs(fit.family("chow-liu")));
    let mean = chosen.iter().sum::<f64>() / chosen.len() as f64;
    let (gain, error) = gain(&chosen, &tree);
    assert!(gain > -error, "{name}: {gain} ± {error} to a Chow–Liu tree");
    assert!(mean > best, "{name}: {mean}, and {best} was within two standard errors of the best family");
}

/// Best single families: titanic −2.3601 (directed), penguins −10.86 (hidden tree), chile −13.07 (hidden tree), nltcs −6.003
/// (directed), dna −79.7 (hidden tree), less two standard errors of the paired difference.
#[test]
fn defaults_are_as_good_as_the_best_family() {
    let Some(shared) = shared() else {
        eprintln!("there are no tables beside the repository: nothing is looked at");
        return;
    };
    let table = |name: &str| {
        ["train", "test"].map(|part| shared.join(format!("tables/{name}_{part}.csv.gz"))).to_vec()
    };
    let twenty = |name: &str| {
        ["train", "valid", "test"]
            .map(|part| shared.join(format!("twenty/{name}/{name}.{part}.data.gz")))
            .to_vec()
    };
    for (files, best) in [
        (table("titanic"), -2.375),
        (table("penguins"), -11.0),
        (table("chile"), -13.08),
        (twenty("nltcs"), -6.005),
        (twenty("dna"), -79.5),
    ] {
        check(&files, best);
    }
}
