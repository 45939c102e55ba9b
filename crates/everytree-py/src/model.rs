//! A model as Python holds it.

use crate::errors::{exception, guarded};
use crate::frame::{frame, without_values};
use crate::numbers::{reals, shorts, wholes};
use crate::options::{FigureCall, ImputeCall, MostProbableCall, QueryCall, SampleCall, ScoreCall, parsed};
use crate::work::{work, work_on_rows};
use everytree::{
    Condition, Drawn, Estimate, Evidence, Figures, ImputedCell, Range, Scoring, TreeEdge, ValueAnswer,
    Variable, Work,
};
use everytree_core::data::States;
use everytree_read::{Frame, ReadSettings, Source};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A learned model. It does not change.
#[pyclass(frozen, module = "everytree._core")]
pub struct Model {
    model: everytree::Model,
}

/// Evidence: a column, what sort of condition, values, and numbers; or a text that says it all.
type Given = Vec<(String, String, Vec<Option<String>>, Vec<f64>)>;

/// A column that is asked for: all of its values, or these.
type Target = (String, Option<Vec<Option<String>>>);

/// Numbers as bytes, as numpy wraps them.
type Buffer<'py> = Bound<'py, PyByteArray>;

impl Model {
    pub fn new(model: everytree::Model) -> Self {
        Self { model }
    }

    /// Evidence as `_conditions.py` tells it.
    fn evidence(&self, given: &Given) -> everytree::Result<Evidence<'_>> {
        given.iter().try_fold(self.model.evidence(), |evidence, (name, kind, values, numbers)| {
            let condition = match kind.as_str() {
                "text" => return evidence.given_text(name),
                "not-in" => Condition::NotIn(values.clone()),
                "range" => {
                    let end = |place: usize| numbers.get(place).copied().unwrap_or(f64::NAN);
                    let open = |sign: &str| values.iter().flatten().any(|value| value == sign);
                    Condition::Range(Range::new((end(0), !open("(")), (end(1), !open(")"))))
                }
                "likelihoods" => {
                    let values = values.iter().map(|value| value.clone().unwrap_or_default());
                    Condition::Likelihoods(values.zip(numbers.iter().copied()).collect())
                }
                _ => Condition::In(values.clone()),
            };
            evidence.given_that(name, condition)
        })
    }

    fn scoring<'a>(&'a self, call: &ScoreCall, stop: &'a AtomicBool) -> Scoring<'a> {
        self.model
            .scoring()
            .missing_as_state(call.missing_as_state)
            .unknown(call.unknown)
            .tolerance(call.tolerance)
            .trees(call.trees)
            .seed(call.seed)
            .device(call.device)
            .stop(stop)
    }

    fn figures(&self, call: &FigureCall) -> Figures<'_> {
        self.model.figures().tolerance(call.tolerance).trees(call.trees).seed(call.seed)
    }
}

fn number(x: f64) -> Value {
    if x.is_finite() { json!(x) } else { Value::Null }
}

/// Labels that were not known, and were taken for not observed.
fn said_of_unknown(cells: u64) -> Option<String> {
    let labels = if cells == 1 { "1 label was" } else { &format!("{cells} labels were") };
    (cells > 0).then(|| {
        format!("{labels} not seen in training: taken for not observed (unknown=\"error\" refuses them)")
    })
}

fn pair(estimate: Estimate) -> (f64, f64) {
    (estimate.value, estimate.standard_error)
}

#[pymethods]
impl Model {
    /// Reads a model file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        guarded(|| Ok(Self { model: py.detach(|| everytree::Model::load(&path)).map_err(exception)? }))
    }

    /// Writes a model file, whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        guarded(|| py.detach(|| self.model.save(&path)).map_err(exception))
    }

    /// Reads the bytes of a model file.
    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        guarded(|| Ok(Self { model: everytree::Model::from_bytes(data).map_err(exception)? }))
    }

    /// The bytes of the model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        guarded(|| Ok(PyBytes::new(py, &self.model.to_bytes().map_err(exception)?)))
    }

    /// What the model is: its columns and their states, its family and size, and how it came about.
    fn description(&self) -> PyResult<String> {
        guarded(|| {
            let (model, file) = (&self.model, self.model.file());
            let variable = |variable: &Variable| {
                // Plain numbers, however the table wrote them.
                let mut plain = variable.clone();
                plain.format = Default::default();
                let cells: Vec<String> = (0..plain.len()).map(|state| plain.cell(state)).collect();
                json!({
                    "name": variable.name, "states": variable.states, "missing": variable.missing,
                    "cells": cells,
                })
            };
            let description = json!({
                "family": model.family(),
                "components": model.components(),
                "mixing_weights": model.mixing_weights(),
                "hidden": file.model.hidden(),
                "directed": model.is_directed(),
                "parameters": model.parameters(),
                "variables": model.schema().variables.iter().map(variable).collect::<Vec<_>>(),
                "blocks": model.variables(),
                "named": model.schema().header,
                "left_out": model.schema().left_out,
                "ids": model.schema().ids,
                "provenance": file.provenance,
            });
            Ok(description.to_string())
        })
    }

    /// How probable every edge is, a row for each variable of the model (a column, or a block of them) and a column for each
    /// that may explain it; symmetric where edges have no direction.
    fn edge_probabilities<'py>(&self, py: Python<'py>) -> PyResult<Buffer<'py>> {
        guarded(|| {
            self.model.check_memory(Work::Look).map_err(exception)?;
            reals(py, &self.model.edge_probabilities().map_err(exception)?)
        })
    }

    /// The most probable edges.
    fn edges(&self, most: usize) -> PyResult<String> {
        guarded(|| {
            let edges = self.model.edges().map_err(exception)?;
            let edge = |edge: &everytree::Edge| json!([edge.from, edge.to, edge.probability]);
            Ok(json!(edges.iter().take(most).map(edge).collect::<Vec<_>>()).to_string())
        })
    }

    /// The log-likelihood of every row and its standard error, and what there is to say of the device.
    #[pyo3(signature = (table, options, on_rows = None))]
    fn score<'py>(
        &self,
        py: Python<'py>,
        table: &Bound<'_, PyAny>,
        options: &str,
        on_rows: Option<Py<PyAny>>,
    ) -> PyResult<(Buffer<'py>, Buffer<'py>, Vec<String>)> {
        guarded(|| {
            let (table, call) = (frame(table, "X")?, parsed::<ScoreCall>(options)?);
            let of = table.rows() as u64;
            let (scores, errors, notes) = work_on_rows(py, call.threads, (on_rows, of), |stop, tell| {
                let (mut scores, mut errors) = (Vec::with_capacity(table.rows()), Vec::new());
                let notes = Mutex::new(Vec::new());
                let noted = || notes.lock().unwrap_or_else(PoisonError::into_inner);
                // That there is a GPU is what everybody hopes for.
                let note = |text: String| {
                    if !text.starts_with("device: cuda") {
                        noted().push(text);
                    }
                };
                let scoring = self.scoring(&call, stop).note(&note).on_rows(tell);
                let scored = scoring.stream(&table, &mut |score| {
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
                noted().extend(said_of_unknown(scored.unknown));
                Ok((scores, errors, std::mem::take(&mut *noted())))
            })?;
            Ok((reals(py, &scores)?, reals(py, &errors)?, notes))
        })
    }

    /// The distribution of one column given the others, row by row, over the values that were seen in training.
    fn conditional<'py>(
        &self,
        py: Python<'py>,
        table: &Bound<'_, PyAny>,
        target: &str,
        options: &str,
    ) -> PyResult<(Buffer<'py>, Buffer<'py>, Vec<String>)> {
        guarded(|| {
            let call: ScoreCall = parsed(options)?;
            // A column that the table does not have is one whose values are not looked at.
            self.model.query().target(target).map_err(exception)?;
            let table = without_values(frame(table, "X")?, target)?;
            let (values, errors, notes) = work(py, call.threads, |stop| {
                let (mut values, mut errors) = (Vec::new(), Vec::new());
                let streamed = self.scoring(&call, stop).conditional_stream(&table, target, &mut |row| {
                    values.extend(row.iter().map(|estimate| estimate.value));
                    errors.extend(row.iter().map(|estimate| estimate.standard_error));
                    Ok(())
                })?;
                Ok((values, errors, said_of_unknown(streamed.unknown)))
            })?;
            Ok((reals(py, &values)?, reals(py, &errors)?, notes.into_iter().collect()))
        })
    }

    /// The surprisal of every row, and of every cell of it given the others.
    #[pyo3(signature = (table, options, on_rows = None))]
    fn surprisal<'py>(
        &self,
        py: Python<'py>,
        table: &Bound<'_, PyAny>,
        options: &str,
        on_rows: Option<Py<PyAny>>,
    ) -> PyResult<(Buffer<'py>, Buffer<'py>, Vec<String>)> {
        guarded(|| {
            let (table, call) = (frame(table, "X")?, parsed::<ScoreCall>(options)?);
            let of = table.rows() as u64;
            let (rows, cells, notes) = work_on_rows(py, call.threads, (on_rows, of), |stop, tell| {
                let (mut rows, mut cells) = (Vec::new(), Vec::new());
                let streamed =
                    self.scoring(&call, stop).on_rows(tell).surprisal_stream(&table, &mut |row, own| {
                        rows.push(row.value);
                        cells.extend_from_slice(own);
                        Ok(())
                    })?;
                Ok((rows, cells, said_of_unknown(streamed.unknown)))
            })?;
            Ok((reals(py, &rows)?, reals(py, &cells)?, notes.into_iter().collect()))
        })
    }

    /// Posterior probabilities given evidence, as JSON.
    fn query(
        &self,
        py: Python<'_>,
        given: Given,
        targets: Option<Vec<Target>>,
        options: &str,
        beside: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        guarded(|| {
            let call: QueryCall = parsed(options)?;
            let beside = beside.map(|table| frame(table, "data")).transpose()?;
            work(py, call.threads, |_| self.answer(&given, targets.as_deref(), &call, beside.as_ref()))
        })
    }

    /// Of every column of bins that something is known of, by its place: a number of each bin, in the range that is known.
    fn cells(&self, given: Given) -> PyResult<Vec<(usize, Vec<f64>)>> {
        guarded(|| {
            let evidence = self.evidence(&given).map_err(exception)?;
            let variables = self.model.schema().variables.iter().enumerate();
            let known = variables.filter(|(_, variable)| {
                matches!(variable.states, States::Bins(_)) && evidence.is_given(&variable.name)
            });
            let numbers = |(place, variable): (usize, &Variable)| {
                let number = |state| variable.format.parse(&evidence.cell(place, state)).unwrap_or(f64::NAN);
                (place, (0..variable.states.len()).map(number).collect())
            };
            Ok(known.map(numbers).collect())
        })
    }

    /// Samples, as codes, and how they were drawn.
    fn sample<'py>(
        &self,
        py: Python<'py>,
        given: Given,
        rows: usize,
        options: &str,
    ) -> PyResult<(Buffer<'py>, String)> {
        guarded(|| {
            let call: SampleCall = parsed(options)?;
            let (rows, drawn) = work(py, call.threads, |_| {
                let sample = self.model.sample(rows).evidence(self.evidence(&given)?).seed(call.seed);
                sample.run_with_method()
            })?;
            let drawn = match drawn {
                Drawn::Exactly => json!({"method": "exact"}),
                Drawn::FromPools { pool, effective } => {
                    json!({"method": "pools", "pool": pool, "effective_sample_size": effective})
                }
                Drawn::FromChains { steps, r_hat } => {
                    json!({"method": "chains", "steps": steps, "r_hat": r_hat})
                }
            };
            let code = |place: usize| rows.table().get(place / rows.columns(), place % rows.columns()) as u16;
            let codes: Vec<u16> = (0..rows.rows() * rows.columns()).map(code).collect();
            Ok((shorts(py, &codes)?, drawn.to_string()))
        })
    }

    /// The most probable rows, as codes, their log-probabilities, and whether each is proven.
    fn most_probable<'py>(
        &self,
        py: Python<'py>,
        given: Given,
        rows: usize,
        options: &str,
    ) -> PyResult<(Buffer<'py>, Vec<f64>, Vec<bool>)> {
        guarded(|| {
            let call: MostProbableCall = parsed(options)?;
            let found = work(py, call.threads, |stop| {
                let go_on = |_: f64| !stop.load(Ordering::Relaxed);
                let search = self.model.most_probable(rows).evidence(self.evidence(&given)?).progress(&go_on);
                search.trees(call.trees).seed(call.seed).missing_as_state(call.missing_as_state).run()
            })?;
            let codes: Vec<u16> = found.iter().flat_map(|row| row.codes.iter().copied()).collect();
            let logs = found.iter().map(|row| row.log_p).collect();
            Ok((shorts(py, &codes)?, logs, found.iter().map(|row| row.proven).collect()))
        })
    }

    /// What fills the missing cells of a table: rows, columns, states, and how probable each is (with its error) where that is
    /// asked for.
    #[pyo3(signature = (table, options, on_rows = None, given = Vec::new()))]
    fn impute<'py>(
        &self,
        py: Python<'py>,
        table: &Bound<'_, PyAny>,
        options: &str,
        on_rows: Option<Py<PyAny>>,
        given: Given,
    ) -> PyResult<([Buffer<'py>; 5], Option<String>)> {
        guarded(|| {
            let (table, call) = (frame(table, "X")?, parsed::<ImputeCall>(options)?);
            let (cells, unknown) =
                work_on_rows(py, call.threads, (on_rows, table.rows() as u64), |stop, tell| {
                    let done = AtomicU64::new(0);
                    let on_row = |_: usize| tell(done.fetch_add(1, Ordering::Relaxed) + 1);
                    let imputation =
                        self.model.imputation().method(call.how).probabilities(call.probabilities);
                    let imputation =
                        imputation.unknown(call.unknown).seed(call.seed).stop(stop).on_row(&on_row);
                    let imputation = imputation.evidence(self.evidence(&given)?);
                    let found = imputation.cells(&table)?;
                    Ok((found.cells, found.unknown))
                })?;
            let whole =
                |of: &dyn Fn(&ImputedCell) -> i64| wholes(py, &cells.iter().map(of).collect::<Vec<_>>());
            let unsure = Estimate { value: f64::NAN, standard_error: f64::NAN };
            let real = |of: &dyn Fn(Estimate) -> f64| {
                reals(
                    py,
                    &cells.iter().map(|cell| of(cell.probability.unwrap_or(unsure))).collect::<Vec<_>>(),
                )
            };
            let buffers = [
                whole(&|cell| cell.row as i64)?,
                whole(&|cell| cell.variable as i64)?,
                whole(&|cell| cell.state as i64)?,
                real(&|estimate| estimate.value)?,
                real(&|estimate| estimate.standard_error)?,
            ];
            Ok((buffers, said_of_unknown(unknown)))
        })
    }

    /// The entropy, and its standard error.
    fn entropy(&self, py: Python<'_>, options: &str) -> PyResult<(f64, f64)> {
        guarded(|| {
            let call: FigureCall = parsed(options)?;
            work(py, call.threads, |_| self.figures(&call).entropy()).map(pair)
        })
    }

    /// The mutual information of two columns, and its standard error.
    fn mutual_information(
        &self,
        py: Python<'_>,
        one: &str,
        other: &str,
        options: &str,
    ) -> PyResult<(f64, f64)> {
        guarded(|| {
            let call: FigureCall = parsed(options)?;
            work(py, call.threads, |_| self.figures(&call).mutual_information(one, other)).map(pair)
        })
    }

    /// The Kullback–Leibler divergence from this model to another with the same columns, and its standard error.
    fn divergence(&self, py: Python<'_>, other: &Model, options: &str) -> PyResult<(f64, f64)> {
        guarded(|| {
            let call: FigureCall = parsed(options)?;
            work(py, call.threads, |_| self.figures(&call).divergence(&other.model)).map(pair)
        })
    }

    /// The probability of evidence, and its standard error.
    fn probability(&self, py: Python<'_>, given: Given, options: &str) -> PyResult<(f64, f64)> {
        guarded(|| {
            let call: FigureCall = parsed(options)?;
            work(py, call.threads, |_| self.figures(&call).probability(&self.evidence(&given)?)).map(pair)
        })
    }
}

impl Model {
    fn answer(
        &self,
        given: &Given,
        targets: Option<&[Target]>,
        call: &QueryCall,
        beside: Option<&Frame>,
    ) -> everytree::Result<String> {
        let mut query = self
            .model
            .query()
            .evidence(self.evidence(given)?)
            .missing_as_state(call.missing_as_state)
            .edges(call.edges)
            .tolerance(call.tolerance)
            .trees(call.trees)
            .seed(call.seed);
        if let Some(method) = call.method {
            query = query.method(method);
        }
        for (name, values) in targets.into_iter().flatten() {
            query = match values {
                None => query.target(name)?,
                Some(values) => values
                    .iter()
                    .try_fold(query, |query, value| query.target_value(name, value.as_deref()))?,
            };
        }
        if targets.is_some_and(<[Target]>::is_empty) {
            query = query.no_targets();
        }
        let mut answer = query.run()?;
        if let Some(beside) = beside {
            query.beside(&mut answer, Source::from(beside), &ReadSettings::default())?;
        }
        let value = |answer: &ValueAnswer| {
            let Estimate { value, standard_error } = answer.probability;
            json!([answer.variable, answer.state, value, number(standard_error), answer.observed])
        };
        let mut object = json!({
            "method": answer.method,
            "trees": answer.trees,
            "effective_sample_size": number(answer.effective_sample_size),
            "log_evidence": answer.log_evidence.value,
            "log_evidence_standard_error": number(answer.log_evidence.standard_error),
            "r_hat": answer.r_hat,
            "matching_rows": answer.matching.map(|matching| matching.rows),
            "data_rows": answer.matching.map(|matching| matching.of),
            "unknown_rows": answer.matching.map(|matching| matching.unknown),
            "answers": answer.values.iter().map(value).collect::<Vec<_>>(),
        });
        if let Some(found) = &answer.edges {
            let edge = |edge: &TreeEdge| {
                json!([edge.from, edge.to, edge.probability.value, number(edge.probability.standard_error)])
            };
            object["edges"] = json!(found.edges.iter().map(edge).collect::<Vec<_>>());
        }
        Ok(object.to_string())
    }
}
