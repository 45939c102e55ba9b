//! Ensembles: models of the same columns, averaged.

use crate::error::Kind;
use crate::{Dataset, Error, Model, Result};
use everytree_core::data::Schema;
use everytree_core::file::{ModelFile, Provenance};
use everytree_core::learn::Stacking;
use everytree_core::memory;
use everytree_core::model::{self, MAX_MEMBERS};
use std::path::Path;

/// A member of a model, in figures.
///
/// ```
/// # use everytree::{Dataset, Fit};
/// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
/// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
/// let model = Fit::new().family("chow-liu").run(&data)?;
/// let member = &model.members()[0];
/// assert_eq!((member.family, member.weight, member.blocks), ("chow-liu", 1.0, None));
/// # Ok::<(), everytree::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Member {
    /// The name of its family.
    pub family: &'static str,
    /// The same in full.
    pub title: &'static str,
    /// How many components it mixes.
    pub components: usize,
    /// States of its latent variables, if it has some.
    pub hidden: Option<usize>,
    /// Blocks of columns, if some are modelled jointly.
    pub blocks: Option<usize>,
    /// Training rows that it contains, in families that store some.
    pub rows: Option<usize>,
    /// How much it counts; the weights of all members add up to 1.
    pub weight: f64,
    /// How many numbers say it all.
    pub parameters: usize,
}

impl Member {
    fn new(member: &model::Member, weight: f64) -> Self {
        let blocks = member.blocks();
        Self {
            family: member.family_name(),
            title: member.title(),
            components: member.mixture().components().len(),
            hidden: member.hidden(),
            blocks: (!blocks.is_none()).then(|| blocks.blocks().len()),
            rows: member.shape().rows,
            weight,
            parameters: member.degrees_of_freedom(),
        }
    }
}

impl Model {
    /// What the model averages, in the order of its file; one, unless it is an ensemble.
    pub fn members(&self) -> Vec<Member> {
        let core = self.core();
        core.members()
            .iter()
            .zip(core.weights())
            .map(|(member, weight)| Member::new(member, weight))
            .collect()
    }

    /// An ensemble of models with the same columns: `p(x) = Σ w_m p_m(x)`. Weights are in proportion; of an ensemble among the
    /// models its members are taken.
    ///
    /// ```
    /// # use everytree::{Dataset, Fit, Model};
    /// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
    /// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
    /// let models = [Fit::new().family("chow-liu").run(&data)?, Fit::new().family("directed").run(&data)?];
    /// let ensemble = Model::ensemble(&models, &[3.0, 1.0])?;
    /// assert_eq!(ensemble.family(), "ensemble");
    /// assert!((ensemble.members()[0].weight - 0.75).abs() < 1e-12);
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn ensemble(models: &[Model], weights: &[f64]) -> Result<Self> {
        let Some(first) = models.first() else {
            return Err(Kind::Schemas("an ensemble needs at least one model".to_owned()).into());
        };
        if weights.len() != models.len() {
            let words = format!("{} weights for {} models", weights.len(), models.len());
            return Err(Error::unwanted("weights", words));
        }
        if let Some(weight) = weights.iter().find(|weight| !(weight.is_finite() && **weight > 0.0)) {
            return Err(Error::option("weights", weight, "must be positive and finite"));
        }
        models.iter().try_for_each(|model| same(first.schema(), model.schema()))?;
        room_for(models.iter().map(bytes_of).sum())?;
        let (mut members, mut log_weights) = (Vec::new(), Vec::new());
        let (mut posteriors, mut provenances) = (Vec::new(), Vec::new());
        for (model, weight) in models.iter().zip(weights) {
            let (core, file) = (model.core(), model.file());
            members.extend(core.members().iter().cloned());
            log_weights.extend(core.log_weights().iter().map(|own| own + weight.ln()));
            posteriors.extend(file.edge_posteriors.iter().cloned());
            match &file.provenance.members[..] {
                [] => provenances.push(file.provenance.clone()),
                several => provenances.extend(several.iter().cloned()),
            }
        }
        if members.len() > MAX_MEMBERS {
            let words = format!("{} members together; at most {MAX_MEMBERS} are possible", members.len());
            return Err(Kind::Schemas(words).into());
        }
        let of_first = &first.file().provenance;
        let provenance =
            Provenance { train: of_first.train.clone(), members: provenances, ..Provenance::default() };
        Ok(ModelFile {
            model: model::Model::with_log_weights(members, log_weights)?,
            schema: (**first.schema()).clone(),
            provenance,
            edge_posteriors: posteriors,
        }
        .into())
    }

    /// The models of these files, to be averaged, if there is room for all of them and for what they come to.
    ///
    /// ```
    /// # use everytree::{Dataset, Fit, Model};
    /// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
    /// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("tree.everytree");
    /// Fit::new().family("chow-liu").run(&data)?.save(&path)?;
    /// assert_eq!(Model::load_all(&[&path, &path])?.len(), 2);
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn load_all<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<Self>> {
        // A file that cannot be looked at is told of where it is read.
        let length = |path: &P| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        room_for(paths.iter().map(length).fold(0, u64::saturating_add))?;
        paths.iter().map(Model::load).collect()
    }

    /// The same with the weights that make the rows of a dataset most probable together (stacking): rows that the models have not
    /// learned from, if the weights are to mean something. Models with less than a hundredth of the weight are left out. With the
    /// mean log-likelihood of these rows, in nats.
    ///
    /// ```
    /// # use everytree::{Dataset, Fit, Model};
    /// # let cells = |a: &'static str, b| [a, b].repeat(20).into_iter().map(Some).collect::<Vec<_>>();
    /// # let data = Dataset::from_columns([("smoker", cells("yes", "no")), ("cough", cells("yes", "no"))])?;
    /// # let (train, rest) = data.split(0.5, 0);
    /// let models = [Fit::new().family("independent").run(&train)?, Fit::new().family("chow-liu").run(&train)?];
    /// let (mixed, mean) = Model::stacked(&models, &rest)?;
    /// assert!(mean >= models[1].score(&rest)?.mean - 1e-9);
    /// assert!((mixed.score(&rest)?.mean - mean).abs() < 1e-9);
    /// # Ok::<(), everytree::Error>(())
    /// ```
    pub fn stacked(models: &[Model], data: &Dataset) -> Result<(Self, f64)> {
        let Some(first) = models.first() else { return Ok((Self::ensemble(models, &[])?, f64::NAN)) };
        models.iter().try_for_each(|model| same(first.schema(), model.schema()))?;
        let mut stacking = Stacking::new(data.weights());
        for model in models {
            let score = model.scoring().missing_as_state(true).run(data)?;
            stacking.push(score.log_likelihoods.iter().map(|row| row.value).collect());
        }
        let found = stacking.fit();
        let kept: Vec<usize> = (0..models.len()).filter(|&model| found.weights[model] > 0.0).collect();
        let some: Vec<Model> = kept.iter().map(|&model| models[model].clone()).collect();
        let weights: Vec<f64> = kept.iter().map(|&model| found.weights[model]).collect();
        Ok((Self::ensemble(&some, &weights)?, found.mean))
    }
}

/// Is there room for models of so many bytes, and for the copy of them that becomes an ensemble?
fn room_for(bytes: u64) -> Result<()> {
    let fits = memory::check("an ensemble of these models", bytes.saturating_mul(2));
    Ok(fits.map_err(|error| Kind::Memory(error, ""))?)
}

/// What the lists of a model take.
fn bytes_of(model: &Model) -> u64 {
    8 * model.parameters() as u64
}

/// Are these the same columns, in the same order, with the same labels?
fn same(one: &Schema, other: &Schema) -> Result<()> {
    let refuse = |words: String| Err(Kind::Schemas(words).into());
    if one.variables.len() != other.variables.len() {
        let (one, other) = (one.variables.len(), other.variables.len());
        return refuse(format!("the models have {one} and {other} columns"));
    }
    for (a, b) in one.variables.iter().zip(&other.variables) {
        if a.name != b.name {
            return refuse(format!("where one model has column {:?}, another has {:?}", a.name, b.name));
        }
        if a.labels() != b.labels() {
            return refuse(format!("column {:?} does not have the same values in all models", a.name));
        }
    }
    Ok(())
}
