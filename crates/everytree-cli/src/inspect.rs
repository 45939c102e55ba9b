//! `everytree inspect`: what a model has learned, and where it comes from.

use crate::Outcome;
use crate::members;
use anyhow::Result;
use clap::Args;
use everytree::{Edge, Model, Schema, Variable, Work, column_width, count, plural, yes_or_no};
use everytree_core::blocks::Block;
use everytree_core::file::Provenance;
use everytree_core::model::{
    ALL_ROWS, Component, ComponentInference, EdgeTables, Learnable, Member, Optimiser, Trees,
};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

/// Variables and states, the strongest edges, components, parameters and provenance of a model.
///
/// The probability of an edge is how probable it is, given a row of the training data, that the tree behind the row has
/// it, on average over the rows; one tree has the edges it has. In the directed family and in trees an arrow goes from what
/// explains to what is explained, and --edges prints the table behind it. Weights are relative to the largest (directed: of the edges to the same column).
#[derive(Args)]
#[command(
    after_help = "Examples:\n  everytree inspect model.everytree\n  everytree inspect model.everytree --edges --json"
)]
pub struct Inspect {
    /// Model file.
    model: PathBuf,
    /// All edges, not only the strongest; with their tables, where arrows have some.
    #[arg(long)]
    edges: bool,
    /// How many edges to show.
    #[arg(long, default_value_t = 20, value_name = "K")]
    top: usize,
    /// Print one JSON object and nothing else on stdout.
    #[arg(long)]
    json: bool,
}

/// An edge as an object.
pub fn edge_json(edge: &Edge) -> Value {
    json!({"from": edge.from, "to": edge.to, "probability": edge.probability, "weight": edge.weight})
}

impl Inspect {
    pub fn run(self) -> Result<Outcome> {
        let model = Model::load(&self.model)?;
        model.check_memory(Work::Look)?;
        let mut edges = model.edges()?;
        let all = edges.len();
        if !self.edges {
            edges.truncate(self.top);
        }
        let single = model.file().model.single();
        let trees = single.map(|member| member.family().spec().trees);
        let has_tables = model.is_directed() && matches!(trees, Some(Trees::All | Trees::One));
        let tables = match single.filter(|_| has_tables && self.edges) {
            Some(member) => Some(Explained::new(&model, member)?),
            None => None,
        };
        let mut out = crate::shown::out();
        if self.json {
            writeln!(out, "{}", self.object(&model, &edges, tables.as_ref())?)?;
            return Ok(Outcome::Done);
        }
        let hidden = model.file().model.hidden();
        let hidden =
            hidden.map_or(String::new(), |count| format!(", {} a column", plural(count, "hidden state")));
        writeln!(
            out,
            "{}{hidden}: {}, {}, {}",
            model.title(),
            plural(model.schema().variables.len(), "variable"),
            plural(model.schema().states().iter().sum(), "state"),
            plural(model.parameters(), "parameter")
        )?;
        members::stored(&model).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        variables(&mut out, model.schema())?;
        match single {
            Some(member) => {
                blocks(&mut out, &model, member)?;
                components(&mut out, &model, member)?;
            }
            None => {
                writeln!(out, "\n{}, by weight:", plural(model.members().len(), "member"))?;
                members::lines(&model).iter().try_for_each(|line| writeln!(out, "{line}"))?;
            }
        }
        if model.is_directed() && trees == Some(Trees::All) {
            roots(&mut out, &model)?;
        }
        if all == 0 {
            writeln!(out, "\nno edges")?;
        } else if self.edges || all <= self.top {
            writeln!(out, "\nedges, the most probable first{}", what(tables.is_some()))?;
        } else {
            writeln!(out, "\nedges, the {} most probable of {}", edges.len(), count(all))?;
        }
        print_edges(&mut out, &edges, tables.as_ref())?;
        provenance(&mut out, &model.file().provenance)?;
        Ok(Outcome::Done)
    }

    fn object(&self, model: &Model, edges: &[Edge], tables: Option<&Explained>) -> Result<Value> {
        let variable = |v: &Variable| {
            let mut entry = json!({"name": v.name, "states": v.labels()});
            if v.missing {
                entry["missing"] = json!(true);
            }
            entry
        };
        let edge = |edge: &Edge| {
            let mut object = edge_json(edge);
            if let Some(tables) = tables {
                let (given, of) = (&tables.labels[edge.ends.0], &tables.labels[edge.ends.1]);
                object["table"] = json!({"given": given, "of": of, "probabilities": tables.table(edge)});
            }
            object
        };
        let names = model.variables();
        let n = names.len();
        let core = &model.file().model;
        let mut object = json!({
            "family": model.family(),
            "components": model.components(),
            "variables": model.schema().variables.iter().map(variable).collect::<Vec<_>>(),
            "edges": edges.iter().map(edge).collect::<Vec<_>>(),
            "parameters": model.parameters(),
            "provenance": model.file().provenance,
        });
        let schema = model.schema();
        if !schema.left_out.is_empty() {
            object["left_out"] = json!(schema.left_out);
            object["ids"] = json!(schema.ids);
        }
        members::describe(model, &mut object);
        if let Some(member) = core.single().filter(|_| model.components() > 1) {
            object["shares"] = json!(model.mixing_weights());
            let one = |component: Summary| {
                let edges: Vec<Value> = component.edges.iter().take(self.top).map(edge_json).collect();
                json!({"share": component.share, "edges": edges})
            };
            object["mixture"] = json!(summaries(model, member)?.into_iter().map(one).collect::<Vec<_>>());
        }
        if model.is_directed() {
            let posteriors = model.edge_matrices()?;
            let root = |v: usize| -> f64 { posteriors.iter().map(|component| component[v * n + v]).sum() };
            let roots: Vec<Value> =
                (0..n).map(|v| json!({"variable": names[v], "probability": root(v)})).collect();
            object["roots"] = json!(roots);
        }
        if let Some(member) = core.single().filter(|member| !member.blocks().is_none()) {
            let name = |&column: &usize| model.schema().variables[column].name.clone();
            let block = |block: &Block| block.columns().iter().map(name).collect::<Vec<_>>();
            object["blocks"] = json!(member.blocks().blocks().iter().map(block).collect::<Vec<_>>());
        }
        Ok(object)
    }
}

/// `P(x_v = · | x_u = a)` of u, a, v.
type Table = Box<dyn Fn(usize, usize, usize) -> Vec<f64>>;

/// The table of every edge that a component has.
fn table_of(component: &Component) -> Result<Table> {
    Ok(match component.inference()? {
        ComponentInference::AllTrees(density) => {
            let tables = density.tables().clone();
            Box::new(move |u, a, v| tables.given(u, a, v).to_vec())
        }
        ComponentInference::OneTree(tree) => Box::new(move |u, a, v| tree.given(u, a, v).to_vec()),
        ComponentInference::Stored(kernel) => {
            // There are no edges: whatever is known of one column says nothing of another by itself.
            let kernel = kernel.clone();
            Box::new(move |_, _, v| kernel.margin(v).to_vec())
        }
    })
}

/// Tables of edges, by the labels of what explains and of what is explained.
pub struct Explained {
    /// Of the states of every variable.
    labels: Vec<Vec<String>>,
    /// Tables of every component, and how probable it makes edges.
    components: Vec<(Vec<f64>, Table)>,
}

impl Explained {
    fn new(model: &Model, member: &Member) -> Result<Self> {
        let variables = &model.schema().variables;
        let label = |block: &Block, state: usize| match block.combination(state) {
            None => "any other".to_owned(),
            Some(codes) if codes.len() == 1 => variables[block.columns()[0]].label(codes[0].into()),
            Some(codes) => {
                let said: Vec<String> = block
                    .columns()
                    .iter()
                    .zip(codes)
                    .filter_map(|(&column, code)| {
                        let variable = &variables[column];
                        // Of yes and no, only what is.
                        let yes_or_no = yes_or_no(variable);
                        match code {
                            0 if yes_or_no => None,
                            1 if yes_or_no => Some(variable.name.clone()),
                            _ => Some(format!("{}={}", variable.name, variable.label(code.into()))),
                        }
                    })
                    .collect();
                if said.is_empty() { "none of them".to_owned() } else { said.join(" + ") }
            }
        };
        let blocks = member.blocks().blocks().iter();
        let components = member.mixture().components().iter().zip(model.edge_matrices()?);
        let components: Result<Vec<_>> =
            components.map(|(component, posterior)| Ok((posterior, table_of(component)?))).collect();
        Ok(Self {
            labels: blocks
                .map(|block| (0..block.states()).map(|state| label(block, state)).collect())
                .collect(),
            components: components?,
        })
    }

    /// `P(to | from)`, one line for each state of what explains; of several components, as much of each as it has of the edge.
    fn table(&self, edge: &Edge) -> Vec<Vec<f64>> {
        let (u, v) = edge.ends;
        let n = self.labels.len();
        let total: f64 = self.components.iter().map(|(posterior, _)| posterior[v * n + u]).sum();
        (0..self.labels[u].len())
            .map(|a| {
                let mut line = vec![0.0; self.labels[v].len()];
                for (posterior, table) in &self.components {
                    let share = match total > 0.0 {
                        true => posterior[v * n + u] / total,
                        false => 1.0 / self.components.len() as f64,
                    };
                    if share > 0.0 {
                        line.iter_mut().zip(table(u, a, v)).for_each(|(p, own)| *p += share * own);
                    }
                }
                line
            })
            .collect()
    }
}

/// What the tables of edges are.
fn what(tables: bool) -> &'static str {
    if tables { "; the tables are probabilities given that this edge is in the tree" } else { "" }
}

/// A table of edges, with bars, and the tables behind them.
pub fn print_edges(out: &mut dyn Write, edges: &[Edge], tables: Option<&Explained>) -> Result<()> {
    let width = column_width(edges.iter().map(|edge| edge.from.chars().count()));
    let other = column_width(edges.iter().map(|edge| edge.to.chars().count()));
    // A tree that is there alone has no weights to speak of.
    let weighted = edges.iter().any(|edge| edge.weight != 1.0);
    for edge in edges {
        let bar = "█".repeat((edge.probability * 20.0).round() as usize);
        let weight = if weighted { format!("weight {:<9.3e} ", edge.weight) } else { String::new() };
        let line = format!(
            "  {:<width$} {} {:<other$}  {:.3}  {weight}{bar}",
            edge.from,
            if edge.directed { "→" } else { "–" },
            edge.to,
            edge.probability,
        );
        writeln!(out, "{}", line.trim_end())?;
        let Some(tables) = tables else { continue };
        let (given, of) = (&tables.labels[edge.ends.0], &tables.labels[edge.ends.1]);
        let shown = |label: &str| if label.is_empty() { "(missing)".to_owned() } else { label.to_owned() };
        let first = column_width(given.iter().map(|label| shown(label).chars().count()));
        let heads: Vec<String> = of.iter().map(|label| format!("{:>6}", shown(label))).collect();
        writeln!(out, "      {:first$}  {}", "", heads.join("  "))?;
        for (label, line) in given.iter().zip(tables.table(edge)) {
            let cells: Vec<String> = line
                .iter()
                .zip(&heads)
                .map(|(p, head)| {
                    format!("{p:>width$.4}", width = column_width([head.chars().count()].into_iter()))
                })
                .collect();
            writeln!(out, "      {:<first$}  {}", shown(label), cells.join("  "))?;
        }
    }
    Ok(())
}

/// Columns that are modelled together.
fn blocks(out: &mut dyn Write, model: &Model, member: &Member) -> Result<()> {
    const MOST: usize = 20;
    let blocks = member.blocks();
    if blocks.is_none() {
        return Ok(());
    }
    let together: Vec<String> = model
        .variables()
        .into_iter()
        .zip(blocks.blocks())
        .filter(|(_, block)| block.columns().len() > 1)
        .map(|(name, block)| format!("  {name}  ({})", plural(block.states(), "state")))
        .collect();
    writeln!(out, "\nblocks, modelled jointly:")?;
    for line in together.iter().take(MOST) {
        writeln!(out, "{line}")?;
    }
    if together.len() > MOST {
        writeln!(out, "  … and {} more", count(together.len() - MOST))?;
    }
    Ok(())
}

/// What a component is like: its share, and the edges of trees of rows that are its own.
struct Summary {
    share: f64,
    edges: Vec<Edge>,
}

/// Of every component, in order.
fn summaries(model: &Model, member: &Member) -> Result<Vec<Summary>> {
    let mixture = member.mixture();
    let n = mixture.states().len();
    let of = |((posterior, share), component): ((Vec<f64>, f64), &Component)| {
        // Given that a row is its own, every variable has a parent or is a root, or all but one have an edge.
        let sum: f64 = posterior.iter().sum();
        let own = match model.is_directed() {
            true => sum / n as f64,
            false => sum / (n.max(2) - 1) as f64,
        };
        let given: Vec<f64> = posterior.iter().map(|p| if own > 0.0 { p / own } else { 0.0 }).collect();
        Summary { share, edges: model.edges_of(&given, &component.weights()) }
    };
    Ok(model
        .edge_matrices()?
        .into_iter()
        .zip(mixture.mixing_weights())
        .zip(mixture.components())
        .map(of)
        .collect())
}

/// All components, the largest first.
fn components(out: &mut dyn Write, model: &Model, member: &Member) -> Result<()> {
    const EDGES: usize = 3;
    let mut components = summaries(model, member)?;
    if components.len() == 1 {
        return Ok(());
    }
    writeln!(out, "\n{}, by mixing weight:", plural(components.len(), "component"))?;
    components.sort_by(|a, b| b.share.total_cmp(&a.share));
    for Summary { share, edges } in components {
        let word = |edge: &Edge| {
            let arrow = if edge.directed { "→" } else { "–" };
            format!("{} {arrow} {} {:.2}", edge.from, edge.to, edge.probability)
        };
        let words: Vec<String> = edges.iter().take(EDGES).map(word).collect();
        writeln!(out, "  {share:.3}  {}", words.join(", "))?;
    }
    Ok(())
}

/// Where forests are rooted.
fn roots(out: &mut dyn Write, model: &Model) -> Result<()> {
    const MOST: usize = 5;
    let names = model.variables();
    let n = names.len();
    let posteriors = model.edge_matrices()?;
    let mut roots: Vec<(f64, &str)> = (0..n)
        .map(|v| (posteriors.iter().map(|component| component[v * n + v]).sum(), names[v].as_str()))
        .collect();
    roots.sort_by(|a, b| b.0.total_cmp(&a.0));
    let all: f64 = roots.iter().map(|(p, _)| p).sum();
    let shown: Vec<String> = roots.iter().take(MOST).map(|(p, name)| format!("{name} {p:.3}")).collect();
    writeln!(out, "\n{all:.2} roots a forest: {}{}", shown.join(", "), if n > MOST { ", …" } else { "" })?;
    Ok(())
}

fn variables(out: &mut dyn Write, schema: &Schema) -> Result<()> {
    const MOST: usize = 30;
    const NAMES: usize = 10;
    // Columns with the same states are one line.
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for variable in &schema.variables {
        let labels = variable.labels();
        let mut text: Vec<String> = labels.iter().take(8).cloned().collect();
        if variable.missing && labels.len() <= 8 {
            text.pop();
            text.push("(missing)".to_owned());
        }
        let more = if labels.len() > 8 { format!(", … {} in all", labels.len()) } else { String::new() };
        let states = format!("{}{more}", text.join(", "));
        match groups.iter_mut().find(|(other, _)| *other == states) {
            Some((_, names)) => names.push(&variable.name),
            None => groups.push((states, vec![&variable.name])),
        }
    }
    let named = |names: &[&str]| match names.len() {
        0..=NAMES => names.join(", "),
        all => format!("{}, … ({})", names[..NAMES - 1].join(", "), plural(all, "column")),
    };
    let shown = &groups[..groups.len().min(MOST)];
    let width = column_width(shown.iter().map(|(_, names)| named(names).chars().count()));
    for (states, names) in shown {
        writeln!(out, "  {:<width$}  {states}", named(names))?;
    }
    if groups.len() > MOST {
        let rest: usize = groups[MOST..].iter().map(|(_, names)| names.len()).sum();
        writeln!(out, "  … and {} more", count(rest))?;
    }
    if !schema.left_out.is_empty() {
        let ids =
            |name: &String| if schema.ids.contains(name) { format!("{name} (id)") } else { name.clone() };
        let names: Vec<String> = schema.left_out.iter().take(12).map(ids).collect();
        let more = if schema.left_out.len() > 12 { ", …" } else { "" };
        writeln!(out, "left out: {}{more}", names.join(", "))?;
    }
    Ok(())
}

fn provenance(out: &mut dyn Write, provenance: &Provenance) -> Result<()> {
    let (Some(settings), Some(results)) = (&provenance.settings, &provenance.results) else { return Ok(()) };
    let by_em = settings.optimiser == Optimiser::Em;
    let how = if by_em { "expectation–maximisation" } else { "Adam" };
    let batches = match settings.batch_size {
        ALL_ROWS => "all rows at once".to_owned(),
        batch => format!("batches of {batch}"),
    };
    let steps = if by_em { String::new() } else { format!(", learning rate {}", settings.learning_rate) };
    writeln!(out, "\nlearned by {how}: {batches}{steps}, seed {}", settings.seed)?;
    if let Some(train) = &provenance.train {
        writeln!(
            out,
            "  from {} ({} distinct), fingerprint {}",
            plural(train.rows, "row"),
            count(train.unique_rows),
            train.fingerprint
        )?;
    }
    let shares = results.evaluated;
    let partial = |share: Option<f64>| match share.filter(|share| *share < 1.0) {
        Some(share) => format!(" (partial: of {:.1} % of the rows)", (100.0 * share).min(99.9)),
        None => String::new(),
    };
    let [train, valid] = [shares.map(|shares| shares.train), shares.map(|shares| shares.valid)].map(partial);
    let of_test = partial(shares.and_then(|shares| shares.test));
    let test = results.test_ll.map_or(String::new(), |test| format!(", test {test:.4}{of_test}"));
    writeln!(
        out,
        "  log-likelihood per row, nats: train {:.4}{train}, valid {:.4}{valid}{test} (epoch {})",
        results.train_ll, results.valid_ll, results.best_epoch
    )?;
    Ok(())
}
