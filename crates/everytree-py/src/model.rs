//! A model as Python holds it.

use crate::errors::exception;
use crate::frame::{frame, without_values};
use crate::work::{check, work};
use anyhow::{Context, Result, bail};
use everytree::{
    DeviceChoice, How, Imputation, Machine, Scorer, Scoring, Translation, all_unknown, all_values, answers,
    column, edge_probabilities, evidence, names, observed_only, ranked, state_of, tree_edges,
};
use everytree_core::data::{Encoder, Schema};
use everytree_core::file::ModelFile;
use everytree_core::infer::{Drawn, Effort, Estimate, InferError, Method, Sampling, Search};
use everytree_core::model::Structure;
use everytree_core::spanning::Kind;
use everytree_read::ReadSettings;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};
use rayon::prelude::*;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

/// A learned model. It does not change.
#[pyclass(frozen, module = "everytree._core")]
pub struct Model {
    file: ModelFile,
}

/// Most cells that are drawn at once.
const MOST_CELLS: usize = 1 << 28;

/// What is known: columns and the values that each may have.
type Given = Vec<(String, Vec<Option<String>>)>;

/// A column that is asked for: all of its values, or these.
type Asked = (String, Option<Vec<Option<String>>>);

impl Model {
    pub fn new(file: ModelFile) -> Self {
        Self { file }
    }

    fn schema(&self) -> &Schema {
        &self.file.schema
    }
}

/// Numbers as bytes.
fn bytes<'py, const N: usize, T: Copy>(
    py: Python<'py>,
    numbers: &[T],
    of: impl Fn(T) -> [u8; N],
) -> PyResult<Bound<'py, PyByteArray>> {
    PyByteArray::new_with(py, numbers.len() * N, |out| {
        out.chunks_exact_mut(N).zip(numbers).for_each(|(out, &number)| out.copy_from_slice(&of(number)));
        Ok(())
    })
}

fn reals<'py>(py: Python<'py>, numbers: &[f64]) -> PyResult<Bound<'py, PyByteArray>> {
    bytes(py, numbers, f64::to_ne_bytes)
}

fn number(x: f64) -> Value {
    if x.is_finite() { json!(x) } else { Value::Null }
}

/// How rows are scored, as it is said in keywords.
fn scoring<'a>(how: &Value, read: &'a ReadSettings, stop: Option<&'a AtomicBool>) -> Result<Scoring<'a>> {
    let tolerance = how["tolerance"].as_f64().unwrap_or(f64::NAN);
    if !(tolerance > 0.0 && tolerance.is_finite()) {
        bail!("--tolerance {tolerance}: must be positive");
    }
    let trees = how["trees"].as_u64().unwrap_or(0) as usize;
    if trees == 0 {
        bail!("--trees 0: at least one");
    }
    Ok(Scoring {
        missing_as_state: how["missing_as_state"].as_bool().unwrap_or(false),
        unknown_is_unobserved: unknown_is_unobserved(how)?,
        tolerance,
        trees,
        seed: seed(how),
        read,
        stop,
        scorer: None,
    })
}

fn unknown_is_unobserved(how: &Value) -> Result<bool> {
    match how["unknown"].as_str() {
        Some("error") => Ok(false),
        Some("unobserved") => Ok(true),
        other => bail!("--unknown {}: error or unobserved", other.unwrap_or_default()),
    }
}

fn parsed(text: &str) -> PyResult<Value> {
    serde_json::from_str(text).map_err(|error| exception(error.into()))
}

fn threads(how: &Value) -> Option<usize> {
    how["threads"].as_u64().map(|threads| threads as usize)
}

fn seed(how: &Value) -> u64 {
    how["seed"].as_u64().unwrap_or(0)
}

fn effort<'a>(how: &Value, targets: &'a [usize]) -> Result<Effort<'a>> {
    let Scoring { tolerance, trees, .. } = scoring(&with_unknown(how), &ReadSettings::default(), None)?;
    Ok(Effort { trees, tolerance: Some(tolerance), seed: seed(how), targets, ..Effort::default() })
}

/// Questions have no cells that could be unknown.
fn with_unknown(how: &Value) -> Value {
    let mut how = how.clone();
    how["unknown"] = json!("error");
    how
}

#[pymethods]
impl Model {
    /// Reads a model file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let file = py.detach(|| ModelFile::load(&path));
        Ok(Self { file: file.map_err(|error| exception(error.into()))? })
    }

    /// Writes a model file, whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.file.save(&path)).map_err(|error| exception(error.into()))
    }

    /// Reads the bytes of a model file.
    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        Ok(Self { file: ModelFile::from_bytes(data).map_err(|error| exception(error.into()))? })
    }

    /// The bytes of the model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.file.to_bytes())
    }

    /// What the model is: its columns and their states, its family and size, and how it came about.
    fn description(&self) -> String {
        let model = &self.file.model;
        let variable = |variable: &everytree_core::data::Variable| {
            let cells: Vec<String> = (0..variable.len()).map(|state| variable.cell(state)).collect();
            json!({
                "name": variable.name, "states": variable.states, "missing": variable.missing,
                "cells": cells,
            })
        };
        json!({
            "family": model.family(),
            "components": model.mixture().components().len(),
            "shares": model.mixture().shares(),
            "hidden": match model.structure() {
                Some(Structure::Hidden(count)) => json!(count),
                _ => Value::Null,
            },
            "directed": model.kind() == Kind::Directed,
            "parameters": model.degrees_of_freedom(),
            "variables": self.schema().variables.iter().map(variable).collect::<Vec<_>>(),
            "blocks": names(&self.file),
            "named": self.schema().header,
            "provenance": self.file.provenance,
        })
        .to_string()
    }

    /// How probable every edge is, a row for each variable of the model (a column, or a block of them) and a column for each
    /// that may explain it; symmetric where edges have no direction.
    fn edge_probabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyByteArray>> {
        let parts = edge_probabilities(&self.file).map_err(exception)?;
        let n = self.file.model.mixture().components().first().map_or(0, |_| names(&self.file).len());
        let mut sum = vec![0.0; n * n];
        parts.iter().for_each(|part| sum.iter_mut().zip(part).for_each(|(sum, p)| *sum += p));
        if self.file.model.kind() == Kind::Undirected {
            for v in 0..n {
                for u in 0..v {
                    let p = sum[v * n + u].max(sum[u * n + v]);
                    (sum[v * n + u], sum[u * n + v]) = (p, p);
                }
                sum[v * n + v] = 0.0;
            }
        }
        reals(py, &sum)
    }

    /// The most probable edges.
    fn edges(&self, most: usize) -> PyResult<String> {
        let edges = ranked(&self.file).map_err(exception)?;
        let edge = |edge: &everytree::Edge| json!([edge.from, edge.to, edge.probability]);
        Ok(json!(edges.iter().take(most).map(edge).collect::<Vec<_>>()).to_string())
    }

    /// The log-likelihood of every row and its standard error, and what there is to say of the device.
    fn score<'py>(
        &self,
        py: Python<'py>,
        table: &Bound<'_, PyAny>,
        how: &str,
    ) -> PyResult<(Bound<'py, PyByteArray>, Bound<'py, PyByteArray>, Vec<String>)> {
        let (table, how) = (frame(table, "X")?, parsed(how)?);
        let (scores, errors, notes) = work(py, threads(&how), |stop| {
            let read = ReadSettings::default();
            let asked = self.file.model.inference()?;
            let (mut scores, mut errors) = (Vec::with_capacity(table.rows()), Vec::new());
            let choice: DeviceChoice =
                how["device"].as_str().unwrap_or("cpu").parse().map_err(anyhow::Error::msg)?;
            let choice = match (choice, self.file.model.structure()) {
                // Nothing for a GPU.
                (DeviceChoice::Auto, Some(_)) => DeviceChoice::Cpu,
                _ => choice,
            };
            let notes = Mutex::new(Vec::new());
            let noted = || notes.lock().unwrap_or_else(PoisonError::into_inner);
            let note = |text: String| noted().push(text);
            let machine = Machine::find(choice, self.schema().variables.len(), &note)?;
            if matches!(machine, Machine::Cuda(_)) {
                // That there is one is what everybody hopes for.
                noted().clear();
            }
            let scorer = Scorer::new(&machine, &self.file.model, &note)?;
            let scoring = Scoring { scorer: Some(&scorer), ..scoring(&how, &read, Some(stop))? };
            let scored = scoring.score((&table).into(), self.schema(), &asked, &mut |score| {
                if score.standard_error != 0.0 {
                    errors.resize(scores.len(), 0.0);
                    errors.push(score.standard_error);
                }
                scores.push(score.value);
                Ok(())
            })?;
            if scored.incomplete > 0 {
                errors.resize(scores.len(), 0.0);
            }
            Ok((scores, errors, std::mem::take(&mut *noted())))
        })?;
        Ok((reals(py, &scores)?, reals(py, &errors)?, notes))
    }

    /// The distribution of one column given the others, row by row, over the values that were seen in training.
    fn conditional<'py>(
        &self,
        py: Python<'py>,
        table: &Bound<'_, PyAny>,
        target: &str,
        how: &str,
    ) -> PyResult<(Bound<'py, PyByteArray>, Bound<'py, PyByteArray>)> {
        let how = parsed(how)?;
        let place = column(self.schema(), target).map_err(|error| exception(error.into()))?;
        let table = without_values(frame(table, "X")?, target)?;
        let (values, errors) = work(py, threads(&how), |stop| {
            let read = ReadSettings::default();
            let asked = self.file.model.inference()?;
            let (mut values, mut errors) = (Vec::new(), Vec::new());
            let scoring = scoring(&how, &read, Some(stop))?;
            scoring.conditional((&table).into(), self.schema(), &asked, place, &mut |row| {
                values.extend(row.iter().map(|estimate| estimate.value));
                errors.extend(row.iter().map(|estimate| estimate.standard_error));
                Ok(())
            })?;
            Ok((values, errors))
        })?;
        Ok((reals(py, &values)?, reals(py, &errors)?))
    }

    /// How surprising every row is, and every cell of it given the others.
    fn surprise<'py>(
        &self,
        py: Python<'py>,
        table: &Bound<'_, PyAny>,
        how: &str,
    ) -> PyResult<(Bound<'py, PyByteArray>, Bound<'py, PyByteArray>)> {
        let (table, how) = (frame(table, "X")?, parsed(how)?);
        let (rows, cells) = work(py, threads(&how), |stop| {
            let read = ReadSettings::default();
            let asked = self.file.model.inference()?;
            let (mut rows, mut cells) = (Vec::new(), Vec::new());
            scoring(&how, &read, Some(stop))?.surprise(
                (&table).into(),
                self.schema(),
                &asked,
                &mut |row, own| {
                    rows.push(row.value);
                    cells.extend_from_slice(own);
                    Ok(())
                },
            )?;
            Ok((rows, cells))
        })?;
        Ok((reals(py, &rows)?, reals(py, &cells)?))
    }

    /// Probabilities given what is known, as JSON.
    fn query(
        &self,
        py: Python<'_>,
        given: Given,
        targets: Option<Vec<Asked>>,
        how: &str,
    ) -> PyResult<String> {
        let how = parsed(how)?;
        work(py, threads(&how), |_| self.answer(&given, targets.as_deref(), &how))
    }

    /// Rows by chance, as codes, and how they were drawn.
    fn sample<'py>(
        &self,
        py: Python<'py>,
        given: Given,
        rows: usize,
        how: &str,
    ) -> PyResult<(Bound<'py, PyByteArray>, String)> {
        let how = parsed(how)?;
        let (rows, drawn) = work(py, threads(&how), |_| {
            if rows.saturating_mul(self.schema().variables.len()) > MOST_CELLS {
                bail!("n {rows}: at most {MOST_CELLS} cells at once; draw some rows after the other");
            }
            let known = evidence(self.schema(), &given)?;
            let sampling = Sampling { seed: seed(&how), ..Sampling::default() };
            Ok(self.file.model.inference()?.sample(&known, rows, sampling)?)
        })?;
        let drawn = match drawn {
            Drawn::Exactly => json!({"method": "exact"}),
            Drawn::FromPools { pool, effective } => {
                json!({"method": "pools", "pool": pool, "effective_sample_size": effective})
            }
            Drawn::FromChains { steps, r_hat } => json!({"method": "chains", "steps": steps, "r_hat": r_hat}),
        };
        Ok((bytes(py, &rows.concat(), u16::to_ne_bytes)?, drawn.to_string()))
    }

    /// The most probable rows, as codes, their log-probabilities, and whether each is proven.
    fn most_probable<'py>(
        &self,
        py: Python<'py>,
        given: Given,
        rows: usize,
        how: &str,
    ) -> PyResult<(Bound<'py, PyByteArray>, Vec<f64>, Vec<bool>)> {
        let how = parsed(how)?;
        let found = work(py, threads(&how), |_| {
            const MOST: usize = 100_000;
            if rows == 0 || rows > MOST {
                bail!("n {rows}: between 1 and {MOST} rows");
            }
            let mut known = evidence(self.schema(), &given)?;
            if !how["missing_as_state"].as_bool().unwrap_or(false) {
                observed_only(self.schema(), |name| given.iter().any(|(own, _)| own == name), &mut known)?;
            }
            let trees = how["trees"].as_u64().unwrap_or(1024) as usize;
            let search = Search { trees, seed: seed(&how), ..Search::default() };
            Ok(self.file.model.inference()?.most_probable(&known, rows, search)?)
        })?;
        let codes: Vec<u16> = found.iter().flat_map(|row| row.row.iter().copied()).collect();
        let logs = found.iter().map(|row| row.log_p).collect();
        Ok((bytes(py, &codes, u16::to_ne_bytes)?, logs, found.iter().map(|row| row.proven).collect()))
    }

    /// What fills the missing cells of a table: rows, columns, states, and how probable each is (with its error) where that is
    /// asked for.
    #[expect(clippy::type_complexity, reason = "five lists of the same length")]
    fn impute<'py>(
        &self,
        py: Python<'py>,
        table: &Bound<'_, PyAny>,
        how: &str,
    ) -> PyResult<(
        Bound<'py, PyByteArray>,
        Bound<'py, PyByteArray>,
        Bound<'py, PyByteArray>,
        Bound<'py, PyByteArray>,
        Bound<'py, PyByteArray>,
    )> {
        let (table, how) = (frame(table, "X")?, parsed(how)?);
        let filled = work(py, threads(&how), |stop| {
            let imputation = Imputation {
                how: match how["how"].as_str() {
                    Some("map") => How::Map,
                    Some("sample") => How::Sample,
                    Some("mean-state") => How::MeanState,
                    other => bail!("--how {}: map, sample or mean-state", other.unwrap_or_default()),
                },
                probabilities: how["probabilities"].as_bool().unwrap_or(false),
                unknown_is_unobserved: unknown_is_unobserved(&how)?,
                seed: seed(&how),
            };
            let schema = self.schema();
            let asked = self.file.model.inference()?;
            let holes = imputation.incomplete_rows((&table).into(), schema, &ReadSettings::default())?;
            let filled: Result<Vec<Vec<everytree::Filled>>> = holes
                .rows
                .par_iter()
                .map(|hole| {
                    check(stop)?;
                    imputation.fill(schema, &asked, hole).with_context(|| format!("X: row {}", hole.row))
                })
                .collect();
            Ok(filled?.concat())
        })?;
        let column = |of: &dyn Fn(&everytree::Filled) -> i64| -> PyResult<Bound<'py, PyByteArray>> {
            bytes(py, &filled.iter().map(of).collect::<Vec<_>>(), i64::to_ne_bytes)
        };
        let unsure = Estimate { value: f64::NAN, standard_error: f64::NAN };
        let sure: Vec<Estimate> = filled.iter().map(|cell| cell.probability.unwrap_or(unsure)).collect();
        Ok((
            column(&|cell| cell.row as i64)?,
            column(&|cell| cell.variable as i64)?,
            column(&|cell| cell.state as i64)?,
            reals(py, &sure.iter().map(|estimate| estimate.value).collect::<Vec<_>>())?,
            reals(py, &sure.iter().map(|estimate| estimate.standard_error).collect::<Vec<_>>())?,
        ))
    }

    /// The Kullback–Leibler divergence from this model to another with the same columns, and its standard error.
    fn divergence(&self, py: Python<'_>, other: &Model, how: &str) -> PyResult<(f64, f64)> {
        let how = parsed(how)?;
        let found = work(py, threads(&how), |_| {
            let translation = Translation::new(self.schema(), other.schema())?;
            let (asked, others) = (self.file.model.inference()?, other.file.model.inference()?);
            Ok(asked.divergence(&others, &|row| translation.row(row), effort(&how, &[])?)?)
        })?;
        Ok((found.value, found.standard_error))
    }

    /// One figure and its standard error: `entropy`, `mutual-information` of two columns, or `probability` of what is given.
    fn figure(
        &self,
        py: Python<'_>,
        what: &str,
        columns: Vec<String>,
        given: Given,
        how: &str,
    ) -> PyResult<(f64, f64)> {
        let how = parsed(how)?;
        let found = work(py, threads(&how), |_| {
            let asked = self.file.model.inference()?;
            let effort = effort(&how, &[])?;
            Ok(match (what, &columns[..]) {
                ("entropy", []) => asked.entropy(effort)?,
                ("mutual-information", [one, other]) => {
                    let (u, v) = (column(self.schema(), one)?, column(self.schema(), other)?);
                    if u == v {
                        bail!(
                            "mutual information of {one:?} and {other:?}: two different columns are needed"
                        );
                    }
                    asked.mutual_information(u, v, effort)?
                }
                ("probability", []) => match asked.log_evidence(&evidence(self.schema(), &given)?, effort) {
                    Ok(log) => {
                        let p = log.value.exp();
                        Estimate { value: p, standard_error: p * log.standard_error }
                    }
                    Err(InferError::Impossible) => Estimate { value: 0.0, standard_error: 0.0 },
                    Err(error) => return Err(error.into()),
                },
                _ => bail!("there is no figure {what:?}"),
            })
        })?;
        Ok((found.value, found.standard_error))
    }
}

impl Model {
    fn answer(&self, given: &Given, targets: Option<&[Asked]>, how: &Value) -> Result<String> {
        let schema = self.schema();
        let known = evidence(schema, given)?;
        let missing_as_state = how["missing_as_state"].as_bool().unwrap_or(false);
        let targets = match targets {
            None => all_unknown(schema, &known, missing_as_state),
            Some(asked) => {
                let encoder = Encoder::new(schema);
                let mut targets = Vec::new();
                for (name, values) in asked {
                    let variable = column(schema, name)?;
                    let all = all_values(schema, &known, variable, missing_as_state);
                    match values {
                        None => targets.extend(all),
                        Some(values) => {
                            for value in values {
                                let wanted = state_of(schema, &encoder, variable, value.as_deref())?;
                                let observed =
                                    !missing_as_state && wanted < schema.variables[variable].states.len();
                                targets.push(everytree::Target { variable, state: wanted, observed });
                            }
                        }
                    }
                }
                targets
            }
        };
        let method = match how["method"].as_str() {
            Some("auto") => None,
            Some("exact") => Some(Method::Exact),
            Some("importance") => Some(Method::Importance),
            Some("collapsed") => Some(Method::Collapsed),
            Some("tilted") => Some(Method::Tilted),
            Some("gibbs") => Some(Method::Gibbs),
            Some("block-gibbs") => Some(Method::BlockGibbs),
            other => bail!(
                "--method {}: auto, exact, importance, collapsed, tilted, gibbs or block-gibbs",
                other.unwrap_or_default()
            ),
        };
        if self.file.model.structure().is_some() && !matches!(method, None | Some(Method::Exact)) {
            bail!("--method: one tree answers exactly; leave it out");
        }
        let mut variables: Vec<usize> = targets.iter().map(|target| target.variable).collect();
        variables.dedup();
        let effort = effort(how, &variables)?;
        let asked = self.file.model.inference()?;
        let found = asked.posterior(&known, method, effort)?;
        let answer = |answer: &everytree::Answer| {
            json!([
                answer.variable,
                answer.target.state,
                answer.estimate.value,
                number(answer.estimate.standard_error)
            ])
        };
        let mut object = json!({
            "method": found.method,
            "trees": found.trees,
            "effective_sample_size": number(found.effective_sample_size),
            "log_evidence": found.log_evidence.value,
            "log_evidence_standard_error": number(found.log_evidence.standard_error),
            "r_hat": found.r_hat,
            "answers": answers(schema, &found, &targets).iter().map(answer).collect::<Vec<_>>(),
        });
        if how["edges"].as_bool().unwrap_or(false) {
            let edges = asked.edges(&known, effort)?;
            let edge = |edge: &everytree::TreeEdge| {
                json!([edge.from, edge.to, edge.probability.value, number(edge.probability.standard_error)])
            };
            let edges = tree_edges(&names(&self.file), asked.kind(), &edges);
            object["edges"] = json!(edges.iter().map(edge).collect::<Vec<_>>());
        }
        Ok(object.to_string())
    }
}
