//! Models of the datasets, and evidence from their test rows.

use crate::table1::program;
use anyhow::{Result, bail};
use everytree_core::data::Dataset;
use everytree_core::file::ModelFile;
use everytree_core::infer::Evidence;
use everytree_core::model::{ComponentInference, Density};
use everytree_read::{CellRules, ReadSettings, read_dataset};
use rand::{RngExt, SeedableRng};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// The model and the test rows.
pub struct Fitted {
    pub model: ModelFile,
    test: Dataset,
}

impl Fitted {
    /// Fits the model with the default settings to `FOLDER/NAME/NAME.train.data.gz`.
    pub fn new(folder: &Path, name: &str) -> Result<Self> {
        let model = learned(folder, name, &[])?;
        let rules =
            CellRules { missing_is_a_state: true, unknown_is_unobserved: false, incomplete_rows: false };
        let test = folder.join(name).join(format!("{name}.test.data.gz"));
        let schema = Arc::new(model.schema.clone());
        let (test, _) = read_dataset(&test, &schema, &ReadSettings::default(), rules)?;
        Ok(Self { model, test })
    }

    /// The model as inference sees it: one component, columns as they are.
    pub fn inference(&self) -> Result<Box<dyn Density + '_>> {
        match self.model.model.members()[0].mixture().components()[0].inference()? {
            ComponentInference::AllTrees(density) => Ok(density),
            _ => bail!("one tree is not what these experiments are about"),
        }
    }

    /// The values of `observed` columns of a test row, both chosen by the seed.
    pub fn evidence(&self, observed: usize, seed: u64) -> Result<Evidence> {
        let mut rng = rand_pcg::Pcg64::seed_from_u64(1000 * observed as u64 + seed);
        let states = self.model.schema.states();
        let row = rng.random_range(0..self.test.rows());
        let mut columns: Vec<usize> = (0..states.len()).collect();
        let mut evidence = Evidence::none(&states);
        for _ in 0..observed {
            let column = columns.swap_remove(rng.random_range(0..columns.len()));
            evidence.set(column, &[self.test.table().get(row, column)])?;
        }
        Ok(evidence)
    }
}

/// The model of the paper's family of `FOLDER/NAME/NAME.train.data.gz`, learned with these arguments.
pub fn learned(folder: &Path, name: &str, arguments: &[&str]) -> Result<ModelFile> {
    let file = |part: &str| folder.join(name).join(format!("{name}.{part}.data.gz"));
    let path = std::env::temp_dir().join(format!("everytree-{name}-{}", std::process::id()));
    let output = Command::new(program()?)
        .arg("fit")
        .arg(file("train"))
        .arg("--valid")
        .arg(file("valid"))
        .args(["--family", "moat", "--quiet", "--out"])
        .arg(&path)
        .args(arguments)
        .output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    let model = ModelFile::load(&path);
    let _ = std::fs::remove_file(&path);
    Ok(model?)
}
