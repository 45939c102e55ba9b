//! The model file: what is written is read, and nothing else gets through.

mod every;
mod mutate;

use everytree_core::blocks::Blocks;
use everytree_core::data::{Dataset, Schema, States, Table, Variable};
use everytree_core::file::{
    Checkpoint, ContentError, FORMAT, FileError, ModelFile, Provenance, Results, TableFacts,
};
use everytree_core::forest::Cpu;
use everytree_core::learn::{
    BestModel, Epoch, Plan, Running, Search, State, Trial, evaluate, log_likelihoods,
};
use everytree_core::model::{
    Component, ComponentShape, Directed, Family, Learnable, MOST_PARAMETER, Member, Mixture, Moat, Model,
    ModelError, Pairs, ParamsView, Settings, Start,
};
use mutate::{mutate, sealed};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::path::Path;

fn example(pairs: Pairs) -> ModelFile {
    let variable = |name: &str, states: States, missing: bool| Variable::new(name, states, missing);
    let schema = Schema {
        variables: vec![
            variable("smoker", States::Booleans(["no".into(), "yes".into()]), false),
            variable("visits", States::Integers(vec![-1, 0, 7]), true),
            variable("dose", States::Reals(vec![0.1, 0.25]), false),
            variable("Größe, \"cm\"", States::Bins(vec![150.5, 170.0]), false),
            variable("ward", States::Texts(vec!["A".into(), "B".into()]), false),
        ],
        header: true,
        missing: vec![String::new(), "NA".into()],
        left_out: Vec::new(),
        ids: Vec::new(),
    };
    let model = match pairs {
        Pairs::Tables => {
            let uniform = |k: usize| vec![1.0 / k as f64; k];
            let states = schema.states();
            let joints = (0..5).flat_map(|v| (0..v).map(move |u| (u, v)));
            Moat::from_tables(
                vec![1.0; 10],
                states.iter().map(|&k| uniform(k)).collect(),
                joints.map(|(u, v)| uniform(states[u] * states[v])).collect(),
            )
            .unwrap()
        }
        _ => Moat::random(schema.states(), pairs, 4).unwrap(),
    };
    // A matrix below the diagonal.
    let edges = (0..25).map(|place| if place / 5 > place % 5 { 0.4 } else { 0.0 }).collect();
    let facts = TableFacts { rows: 100, unique_rows: 60, fingerprint: "00c0ffee00c0ffee".into() };
    ModelFile {
        model: Model::plain(Component::Moat(model)),
        schema,
        provenance: Provenance {
            settings: Some(Settings::paper(5)),
            precision: Some("f32".into()),
            train: Some(facts.clone()),
            valid: Some(facts),
            results: Some(Results {
                best_epoch: 1,
                train_ll: -4.5,
                valid_ll: -4.625,
                test_ll: None,
                evaluated: None,
                history: vec![
                    Epoch { epoch: 0, train: -5.0, valid: -5.0 },
                    Epoch { epoch: 1, train: -4.5, valid: -4.625 },
                ],
            }),
            trials: Vec::new(),
            members: Vec::new(),
            stopped: None,
        },
        edge_posteriors: vec![Some(vec![edges])],
    }
}

#[test]
fn what_is_written_is_read() {
    for pairs in [Pairs::Lambda, Pairs::Sinkhorn, Pairs::Tables] {
        let file = example(pairs);
        let bytes = file.to_bytes().unwrap();
        assert_eq!(bytes, example(pairs).to_bytes().unwrap(), "the same bytes every time");
        assert_eq!(ModelFile::from_bytes(&bytes).unwrap(), file);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.everytree");
    example(Pairs::Lambda).save(&path).unwrap();
    assert_eq!(ModelFile::load(&path).unwrap(), example(Pairs::Lambda));
}

fn log_p(model: &Model, row: &[u16]) -> f64 {
    let blocks = model.members()[0].blocks();
    let mut table = Table::new(&blocks.column_states());
    table.push(row);
    evaluate(
        model.members()[0].mixture(),
        &blocks.unique(&Dataset::anonymous(&blocks.column_states(), table).unwrap()),
        &Cpu::<f64>::new(),
    )
    .unwrap()
    .mean
}

/// Format 1 as the first version wrote it; every later version must read it.
#[test]
fn the_golden_file_of_format_1_is_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/format-1.everytree");
    let file = ModelFile::load(&path).unwrap();
    // All but the numbers of the model, which the likelihood of a row tells.
    assert_eq!(file, ModelFile { model: file.model.clone(), ..example(Pairs::Lambda) });
    assert_eq!(
        (file.model.members()[0].family(), file.model.members()[0].blocks()),
        (Family::Moat, example(Pairs::Lambda).model.members()[0].blocks())
    );
    let found = log_p(&file.model, &[1, 3, 0, 2, 1]);
    assert!((found - GOLDEN).abs() < 1e-12, "{found}");
}

/// log p of that row under that model.
const GOLDEN: f64 = -5.6328297792342905;

/// A bit that flips is an error, wherever it is, and not another model.
#[test]
fn every_flipped_bit_is_noticed() {
    for bytes in [mixture().to_bytes().unwrap(), trees()[0].to_bytes().unwrap()] {
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1 << (place % 8);
            assert!(ModelFile::from_bytes(&damaged).is_err(), "byte {place} of {}", bytes.len());
        }
    }
    let bytes = checkpoint().to_bytes().unwrap().unwrap();
    for place in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1 << (place % 8);
        assert!(Checkpoint::from_bytes(&damaged).is_err(), "byte {place} of {}", bytes.len());
    }
}

/// What later versions will write is refused by name, where this one cannot read it.
#[test]
fn format_3_has_room_for_what_comes() {
    let bytes = example(Pairs::Lambda).to_bytes().unwrap();
    let refused = |change: &dyn Fn(&mut serde_json::Value), words: &str| {
        let error = content(&redescribe(&bytes, change)).to_string();
        assert!(error.contains(words), "{error}");
    };
    let twice = |d: &mut serde_json::Value| {
        let member = d["members"][0].clone();
        d["members"].as_array_mut().unwrap().push(member);
    };
    refused(&twice, "member.1.");
    refused(&|d| d["members"] = serde_json::json!([]), "0 members");
    refused(
        &|d| d["schema"]["variables"][2]["kind"] = "real".into(),
        "column \"dose\" is of kind \"real\", which this version does not know",
    );
    refused(&|d| d["schema"]["left_out"] = serde_json::json!(["ward"]), "left out");
    // What was left out is remembered.
    let mut file = example(Pairs::Lambda);
    file.schema.left_out = vec!["title".into(), "id".into()];
    assert_eq!(ModelFile::from_bytes(&file.to_bytes().unwrap()).unwrap(), file);
}

/// Mixing weights of a model add up to 1, and one that does not have such weights is refused.
#[test]
fn mixing_weights_are_normalised() {
    let one = |seed: u64| Component::Directed(Directed::random(vec![2, 2], seed).unwrap());
    let drifted = Mixture::with_log_mixing_weights(vec![one(1), one(2)], vec![7.0, 8.0]).unwrap();
    let model = Member::new(Blocks::none(&[2, 2]), drifted).unwrap();
    let weights: f64 = model.mixture().log_mixing_weights().iter().map(|log| log.exp()).sum();
    assert!((weights - 1.0).abs() < 1e-12, "{weights}");
    // `components.log_weight` is the first list.
    let bytes = mixture().to_bytes().unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut heavy = bytes.clone();
    heavy[8 + length..16 + length].copy_from_slice(&0.5f64.to_le_bytes());
    let error = content(&sealed(heavy)).to_string();
    assert!(error.contains("the mixing weights add up to"), "{error}");
}

/// The first two of these and a tree of the third are averaged.
fn ensemble() -> ModelFile {
    let [plain, blocks] = [example(Pairs::Sinkhorn), mixture()];
    let [_, tree, _] = trees();
    let members = [&plain, &blocks, &tree].map(|file| file.model.members()[0].clone());
    let edge_posteriors = [plain.edge_posteriors, blocks.edge_posteriors, tree.edge_posteriors].concat();
    let provenance = Provenance {
        members: vec![plain.provenance.clone(), blocks.provenance, tree.provenance],
        ..Provenance::default()
    };
    let model = Model::ensemble(members.to_vec(), &[3.0, 2.0, 1.0]).unwrap();
    ModelFile { model, schema: plain.schema, provenance, edge_posteriors }
}

#[test]
fn ensembles_are_written_and_read() {
    let bytes = ensemble().to_bytes().unwrap();
    assert_eq!(ModelFile::from_bytes(&bytes).unwrap(), ensemble());
    let few = redescribe(&bytes, &|d| {
        d["members"].as_array_mut().unwrap().pop();
    });
    let error = content(&few).to_string();
    assert!(error.contains("members"), "{error}");
    // `members.log_weight` is the last list: the weights add up to 1, or the file is refused.
    let mut heavy = bytes.clone();
    let place = bytes.len() - 4 - 8;
    heavy[place..place + 8].copy_from_slice(&(-1.0f64).to_le_bytes());
    let error = content(&sealed(heavy)).to_string();
    assert!(error.contains("the weights of members add up to"), "{error}");
}

/// Two components of the directed family; the first and the last column are one block.
fn mixture() -> ModelFile {
    let file = example(Pairs::Lambda);
    let columns = file.schema.states();
    let blocks =
        Blocks::from_combinations(&columns, &[(vec![0, 4], vec![vec![0, 1], vec![1, 0], vec![1, 1]])])
            .unwrap();
    let one = |seed: u64| Component::Directed(Directed::random(blocks.states(), seed).unwrap());
    let mixture = Mixture::new(vec![one(1), one(2)], &[0.25, 0.75]).unwrap();
    let edge_posteriors = vec![Some(vec![vec![0.125; 16], vec![0.0625; 16]])];
    ModelFile { model: Member::new(blocks, mixture).unwrap().into(), edge_posteriors, ..file }
}

/// Format 2 as the first version that had it wrote it: components, blocks, the directed family.
#[test]
fn the_golden_file_of_format_2_is_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/format-2.everytree");
    let file = ModelFile::load(&path).unwrap();
    assert_eq!(file, ModelFile { model: file.model.clone(), ..mixture() });
    assert_eq!(
        (file.model.members()[0].family(), file.model.members()[0].blocks()),
        (Family::Directed, mixture().model.members()[0].blocks())
    );
    assert_eq!(
        file.model.members()[0].mixture().log_mixing_weights(),
        mixture().model.members()[0].mixture().log_mixing_weights()
    );
    let found = log_p(&file.model, &[1, 3, 0, 2, 1]);
    assert!((found - GOLDEN_2).abs() < 1e-12, "{found}");
}

const GOLDEN_2: f64 = -4.76205948457033;

/// Format 3 as the first version that had it wrote it: members, kinds of columns, columns left out, a checksum.
#[test]
fn the_golden_file_of_format_3_is_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/format-3.everytree");
    let file = ModelFile::load(&path).unwrap();
    let left_out = vec!["patient".to_owned()];
    let schema = Schema { left_out, ..mixture().schema };
    assert_eq!(file, ModelFile { model: file.model.clone(), schema, ..mixture() });
    let found = log_p(&file.model, &[1, 3, 0, 2, 1]);
    assert!((found - GOLDEN_2).abs() < 1e-12, "{found}");
}

/// Two components of a family, at random.
fn two(family: Family) -> ModelFile {
    let file = example(Pairs::Lambda);
    let states = file.schema.states();
    let shape = ComponentShape { hidden: Some(3), rows: Some(5), ..ComponentShape::default() };
    let one = |seed: u64| family.random(&states, &shape, seed).unwrap();
    let mixture = Mixture::new(vec![one(1), one(2)], &[0.25, 0.75]).unwrap();
    let model = Member::new(Blocks::none(&states), mixture).unwrap().into();
    ModelFile { model, edge_posteriors: vec![None], ..file }
}

/// Families of one tree.
fn trees() -> [ModelFile; 3] {
    [Family::Independent, Family::ChowLiu, Family::Hclt].map(two)
}

/// Rows, their weights, margins, bandwidths: each is what it says it is, or the file is refused.
#[test]
fn stored_rows_are_written_and_read() {
    let file = two(Family::Kernel);
    let bytes = file.to_bytes().unwrap();
    assert_eq!(ModelFile::from_bytes(&bytes).unwrap(), file);
    let refused = |rows: usize| {
        let change = |description: &mut serde_json::Value| description["members"][0]["rows"] = rows.into();
        ModelFile::from_bytes(&redescribe(&bytes, &change)).unwrap_err().to_string()
    };
    for rows in [0, 4, 6, usize::MAX / 8] {
        let error = refused(rows);
        assert!(!error.is_empty(), "{rows}: {error}");
    }
    let component = &file.model.members()[0].mixture().components()[0];
    let (states, shape) = (file.schema.states(), component.shape());
    let numbers: Vec<f64> = component.lists().iter().flat_map(|list| list.to_vec()).collect();
    assert!(Family::Kernel.from_numbers(&states, &shape, numbers.clone()).is_ok());
    // A number of each list, and what may not stand there: rows that do not exist, weights that do not add up.
    let total: usize = states.iter().sum();
    let bad = [(0, 0.5), (0, -1.0), (0, 1e9), (0, f64::NAN), (5, 0.0), (10, 1.0), (10, 0.0)];
    // Bandwidths so small that products of them are no numbers, too.
    for (place, bad) in bad.into_iter().chain([(10 + total, 1.0), (10 + total, 5e-324), (10 + total, 0.0)]) {
        let mut changed = numbers.clone();
        changed[place] = bad;
        assert!(Family::Kernel.from_numbers(&states, &shape, changed).is_err(), "{place}: {bad}");
    }
}

/// All rows together have probability 1.
fn assert_normalised(file: &ModelFile, seed: u64) {
    for member in file.model.members().iter().filter(|member| member.family() == Family::Kernel) {
        let states = member.mixture().states();
        let mut table = Table::new(states);
        every::row(states).iter().for_each(|row| table.push(row));
        let logs = log_likelihoods(member.mixture(), &table, &Cpu::<f64>::new()).unwrap();
        let sum: f64 = logs.iter().map(|log| log.exp()).sum();
        assert!((sum - 1.0).abs() < 1e-9, "seed {seed}: {sum}");
    }
}

#[test]
fn trees_are_written_and_read() {
    for (file, family) in trees().into_iter().zip(["independent", "mixture-of-trees", "hclt"]) {
        assert_eq!(file.model.family_name(), family);
        assert_eq!(ModelFile::from_bytes(&file.to_bytes().unwrap()).unwrap(), file);
    }
    let bytes = trees()[1].to_bytes().unwrap();
    let refused = |change: &dyn Fn(&mut serde_json::Value), words: &str| {
        let error = ModelFile::from_bytes(&redescribe(&bytes, change)).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    refused(
        &|description| description["members"][0]["hidden"] = 3.into(),
        "hidden states belong to families with latent variables",
    );
    refused(
        &|description| description["members"][0]["family"] = "hclt".into(),
        "hidden states belong to families with latent variables",
    );
    // A tree is no forest without edges.
    refused(&|description| description["members"][0]["family"] = "independent".into(), "");
}

#[test]
fn mixtures_that_do_not_fit_are_refused() {
    let bytes = mixture().to_bytes().unwrap();
    let changed = |change: &dyn Fn(&mut serde_json::Value)| {
        ModelFile::from_bytes(&redescribe(&bytes, change)).unwrap_err()
    };
    assert!(matches!(changed(&|d| d["members"][0]["components"] = 0.into()), ContentError::Description(_)));
    assert!(matches!(changed(&|d| d["members"][0]["components"] = 3.into()), ContentError::Model(_)));
    assert!(matches!(
        changed(&|d| d["members"][0]["components"] = 1_000_000_000_000u64.into()),
        ContentError::Description(_)
    ));
    // A schema that is none, before blocks are made of it.
    for variables in ["[]", r#"[{"name": "a", "states": {"bins": []}, "missing": false}]"#] {
        let variables: serde_json::Value = serde_json::from_str(variables).unwrap();
        let error = changed(&|d| d["schema"]["variables"] = variables.clone());
        assert!(matches!(error, ContentError::Model(_)), "{error}");
    }
    assert!(matches!(changed(&|d| d["members"][0]["pairs"] = "lambda".into()), ContentError::Description(_)));
    assert!(matches!(changed(&|d| d["members"][0]["family"] = "moat".into()), ContentError::Description(_)));
    assert!(matches!(
        changed(&|d| d["members"][0]["blocks"][0]["columns"] = vec![0, 9].into()),
        ContentError::Model(_)
    ));
    assert!(matches!(
        changed(&|d| d["members"][0]["blocks"][0]["columns"] = vec![0, 0].into()),
        ContentError::Model(_)
    ));
    // A combination twice, out of order, of no state, and none at all.
    for combinations in [vec![vec![0, 1], vec![0, 1]], vec![vec![1, 0], vec![0, 1]], vec![vec![0, 2]], vec![]]
    {
        let error = changed(&|d| d["members"][0]["blocks"][0]["combinations"] = combinations.clone().into());
        assert!(matches!(error, ContentError::Model(_)), "{combinations:?}: {error}");
    }
}

fn content(bytes: &[u8]) -> ContentError {
    ModelFile::from_bytes(bytes).unwrap_err()
}

/// The file with its description changed.
fn redescribed(change: impl Fn(&mut serde_json::Value)) -> Vec<u8> {
    redescribe(&example(Pairs::Lambda).to_bytes().unwrap(), &change)
}

fn redescribe(bytes: &[u8], change: &dyn Fn(&mut serde_json::Value)) -> Vec<u8> {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let mut description: serde_json::Value =
        serde_json::from_str(header["__metadata__"]["everytree"].as_str().unwrap()).unwrap();
    change(&mut description);
    header["__metadata__"]["everytree"] = description.to_string().into();
    let mut header = header.to_string().into_bytes();
    header.resize(header.len().next_multiple_of(8), b' ');
    sealed([&(header.len() as u64).to_le_bytes()[..], &header, &bytes[8 + length..]].concat())
}

#[test]
fn damaged_and_foreign_files_are_told_apart() {
    let bytes = example(Pairs::Lambda).to_bytes().unwrap();
    assert!(matches!(content(b""), ContentError::Container(_)));
    assert!(matches!(content(&bytes[..bytes.len() - 1]), ContentError::Container(_)));
    assert!(matches!(content(&bytes[..40]), ContentError::Container(_)));
    assert!(matches!(content(b"PK\x03\x04 a zip file, perhaps, of some length"), ContentError::Container(_)));
    let header = b"{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}} ";
    let foreign = [&(header.len() as u64).to_le_bytes()[..], header, &[0; 4]].concat();
    assert_eq!(content(&foreign), ContentError::Foreign);
    let newer = redescribed(|d| d["format"] = (FORMAT + 1).into());
    assert_eq!(
        content(&newer).to_string(),
        format!(
            "format {}, written by version {}; this version reads formats up to {FORMAT}: update everytree",
            FORMAT + 1,
            env!("CARGO_PKG_VERSION")
        )
    );
    assert!(matches!(content(&redescribed(|d| d["kind"] = "checkpoint".into())), ContentError::Kind { .. }));
    assert!(matches!(
        content(&redescribed(|d| d["members"][0]["family"] = "oak".into())),
        ContentError::Description(_)
    ));
    assert!(matches!(content(&redescribed(|d| d["schema"] = 3.into())), ContentError::Description(_)));
    let shorter = redescribed(|d| drop(d["schema"]["variables"].as_array_mut().unwrap().pop()));
    assert!(matches!(content(&shorter), ContentError::Model(_)));
    let disorder = redescribed(|d| d["schema"]["variables"][1]["states"]["integers"] = vec![3, 2, 1].into());
    assert!(matches!(content(&disorder), ContentError::Model(_)));
    let twice = redescribed(|d| d["schema"]["variables"][1]["name"] = "smoker".into());
    assert!(matches!(content(&twice), ContentError::Model(_)));
    assert!(matches!(
        content(&redescribed(|d| d["members"][0]["pairs"] = "sinkhorn".into())),
        ContentError::Tensor { .. }
    ));
    // The eight bytes before the checksum are a parameter.
    let mut nan = bytes.clone();
    let end = nan.len() - 4;
    nan[end - 8..end].copy_from_slice(&f64::NAN.to_le_bytes());
    assert!(matches!(content(&nan), ContentError::Checksum { .. }));
    assert!(matches!(content(&sealed(nan)), ContentError::Tensor { .. }));
    let missing = ModelFile::load(Path::new("no such file")).unwrap_err();
    assert!(matches!(missing, FileError::Io { .. }));
}

fn fuzz(seed: u64, rounds: u64) {
    let mut originals: Vec<Vec<u8>> = [Pairs::Lambda, Pairs::Sinkhorn, Pairs::Tables]
        .map(|pairs| example(pairs).to_bytes().unwrap())
        .into();
    originals.push(mixture().to_bytes().unwrap());
    originals.push(ensemble().to_bytes().unwrap());
    originals.extend(trees().iter().map(|file| file.to_bytes().unwrap()));
    originals.push(two(Family::Kernel).to_bytes().unwrap());
    let checkpoint = checkpoint().to_bytes().unwrap().unwrap();
    assert!(Checkpoint::from_bytes(&checkpoint).is_ok());
    for round in 0..rounds {
        let mut rng = Pcg64::seed_from_u64(seed.wrapping_add(round));
        let mut bytes = originals[rng.random_range(0..originals.len())].clone();
        mutate(&mut bytes, &mut rng);
        let mut damaged = checkpoint.clone();
        mutate(&mut damaged, &mut rng);
        // Most of them get past the checksum.
        if rng.random_bool(0.9) {
            (bytes, damaged) = (sealed(bytes), sealed(damaged));
        }
        if let Ok(read) = Checkpoint::from_bytes(&damaged) {
            let state = read.search.running.unwrap().state;
            assert!(state.best_epoch().is_none_or(|best| best.epoch <= state.epochs()));
        }
        if let Ok(file) = ModelFile::from_bytes(&bytes) {
            assert_normalised(&file, seed.wrapping_add(round));
            let cpu = Cpu::<f64>::new();
            for member in file.model.members() {
                let mixture = member.mixture();
                let mut table = Table::new(mixture.states());
                table.push(&vec![0; mixture.states().len()]);
                if let Ok(mut ready) = mixture.ready(&cpu) {
                    let mut out = [0.0];
                    mixture.log_likelihood(&cpu, &mut ready, table.codes(), &mut out).unwrap();
                    assert!(!out[0].is_nan(), "seed {}", seed.wrapping_add(round));
                }
            }
        }
    }
}

fn checkpoint() -> Checkpoint {
    let file = mixture();
    let mut state = State::new(file.model.members()[0].mixture().clone());
    state.history = file.provenance.results.unwrap().history;
    let start =
        Start { family: Family::Directed, pairs: Pairs::Lambda, pseudocount: 1.0, random: false, seed: 0 };
    let trial = Trial { grouping: 0, components: 2, hidden: 1, pilot: false };
    let running = Running { trial, blocks: file.model.members()[0].blocks().clone(), state };
    let earlier = example(Pairs::Lambda);
    let model = earlier.model.members()[0].clone();
    let best = BestModel { model, history: earlier.provenance.results.unwrap().history };
    let plan = Plan { groupings: vec![vec![vec![0, 4]]], ..Plan::simple(start, 2) };
    let facts = file.provenance.train.unwrap();
    Checkpoint {
        search: Search { plan, results: Vec::new(), best: Some(best), running: Some(running) },
        settings: Family::Directed.settings(5),
        precision: "f32".into(),
        schema: file.schema,
        train: facts.clone(),
        valid: facts,
        holdout: Some(0.1),
        choosing: None,
    }
}

#[test]
fn what_is_put_aside_is_taken_up() {
    let checkpoint = checkpoint();
    assert_eq!(Checkpoint::from_bytes(&checkpoint.to_bytes().unwrap().unwrap()).unwrap(), checkpoint);
    // What makes no sense is refused before it is met.
    let bytes = checkpoint.to_bytes().unwrap().unwrap();
    let refused = |change: &dyn Fn(&mut serde_json::Value)| {
        Checkpoint::from_bytes(&redescribe(&bytes, change)).unwrap_err()
    };
    let tried = r#"[{"trial": {"grouping": 99, "components": 1, "look": true}, "valid": -1.0, "best_epoch": 0, "epochs": 1}]"#;
    let tried: serde_json::Value = serde_json::from_str(tried).unwrap();
    assert!(matches!(refused(&|d| d["search"]["tried"] = tried.clone()), ContentError::Description(_)));
    let many = serde_json::json!({"just": 10_000_000_000_000u64});
    assert!(matches!(
        refused(&|d| d["search"]["plan"]["components"] = many.clone()),
        ContentError::Description(_)
    ));
    let none = serde_json::json!([]);
    assert!(matches!(
        refused(&|d| d["search"]["best"]["history"] = none.clone()),
        ContentError::Description(_)
    ));
    let nothing = Search { running: None, ..checkpoint.search.clone() };
    assert!(Checkpoint { search: nothing, ..checkpoint }.to_bytes().is_none());
}

/// The first format knew one fit, and did not say which.
#[test]
fn checkpoints_of_format_1_are_read() {
    let bytes = checkpoint().to_bytes().unwrap().unwrap();
    let old = redescribe(&bytes, &|d| {
        d["format"] = 1.into();
        d.as_object_mut().unwrap().remove("search");
        let settings = d["settings"].as_object_mut().unwrap();
        settings.remove("optimiser");
        settings.remove("regularisation");
    });
    let read = Checkpoint::from_bytes(&old).unwrap();
    assert_eq!(
        read.search.running,
        checkpoint().search.running.map(|running| Running {
            trial: Trial { grouping: 0, components: 1, hidden: 0, pilot: false },
            ..running
        })
    );
    assert_eq!(read.search.best, None);
}

#[test]
fn mutated_files_never_panic() {
    fuzz(0, 20_000);
}

/// `cargo xtask fuzz` runs this until its time is up.
#[test]
#[ignore = "runs for EVERYTREE_FUZZ_SECONDS"]
fn fuzz_the_loader_for_long() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seconds = number("EVERYTREE_FUZZ_SECONDS").unwrap_or(60);
    let mut seed = number("EVERYTREE_FUZZ_SEED").unwrap_or(1) << 32;
    let begin = std::time::Instant::now();
    while begin.elapsed().as_secs() < seconds {
        fuzz(seed, 1000);
        seed += 1000;
    }
    println!("{} files, none of them fatal", seed & 0xffff_ffff);
}

/// Parameters at the edge of what a file may have, and in between: what loads is a distribution, in every family.
#[test]
fn whatever_loads_adds_up_to_one() {
    const STATES: [usize; 4] = [2, 3, 1, 2];
    const VALUES: [f64; 12] =
        [0.0, 1.0, -1.0, 30.0, -30.0, 40.0, -750.0, 750.0, 1e4, -1e4, MOST_PARAMETER, -MOST_PARAMETER];
    let mut rng = Pcg64::seed_from_u64(9);
    let schema = Schema::anonymous(&STATES);
    for (family, pairs) in [
        (Family::Moat, Some(Pairs::Lambda)),
        (Family::Moat, Some(Pairs::Sinkhorn)),
        (Family::Directed, None),
        (Family::Independent, None),
        (Family::ChowLiu, None),
        (Family::Hclt, None),
    ] {
        let hidden = (family == Family::Hclt).then_some(3);
        let shape = ComponentShape { pairs, hidden, ..ComponentShape::default() };
        for round in 0..200 {
            let mut one = |seed: u64| {
                let mut component = family.random(&STATES, &shape, seed).unwrap();
                // A few numbers, or all of them.
                let often = [0.1, 1.0][usize::from(rng.random_bool(0.3))];
                for slice in component.slices_mut() {
                    for value in slice {
                        if rng.random_bool(often) {
                            *value = VALUES[rng.random_range(0..VALUES.len())];
                        }
                    }
                }
                component
            };
            let mixture = Mixture::new(vec![one(2 * round), one(2 * round + 1)], &[1.0, 3.0]).unwrap();
            let model = Member::new(Blocks::none(&STATES), mixture).unwrap().into();
            let file = ModelFile {
                model,
                schema: schema.clone(),
                provenance: Provenance::default(),
                edge_posteriors: vec![None],
            };
            let loaded = match ModelFile::from_bytes(&file.to_bytes().unwrap()) {
                Ok(loaded) => loaded,
                Err(error) => panic!("{family:?} {round}: {error}"),
            };
            let mut table = Table::new(&STATES);
            every::row(&STATES).iter().for_each(|row| table.push(row));
            let logs = match log_likelihoods(loaded.model.members()[0].mixture(), &table, &Cpu::<f64>::new())
            {
                Ok(logs) => logs,
                // A matrix that cannot be scaled is an error, not a distribution that is none.
                Err(ModelError::Unbalanced { .. }) if pairs == Some(Pairs::Sinkhorn) => continue,
                Err(error) => panic!("{family:?} {round}: {error}"),
            };
            let sum: f64 = logs.iter().map(|log| log.exp()).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{family:?} {pairs:?} {round}: {sum} {logs:?}");
        }
    }
    // Beyond the edge.
    for value in [1e6, -1e300, 2.0 * MOST_PARAMETER] {
        let mut component = Family::Directed.random(&STATES, &ComponentShape::default(), 1).unwrap();
        component.slices_mut()[0][1] = value;
        let file = ModelFile {
            model: Model::plain(component),
            schema: schema.clone(),
            provenance: Provenance::default(),
            edge_posteriors: vec![None],
        };
        let error = ModelFile::from_bytes(&file.to_bytes().unwrap()).unwrap_err().to_string();
        assert!(error.contains("learning keeps within"), "{error}");
    }
}

/// Probabilities of edges that are none.
#[test]
fn posteriors_of_edges_are_checked() {
    let good = example(Pairs::Lambda);
    for value in [1e18, -0.5, 1.01, f64::NAN] {
        let mut file = good.clone();
        file.edge_posteriors[0].as_mut().unwrap()[0][5] = value;
        assert!(ModelFile::from_bytes(&file.to_bytes().unwrap()).is_err(), "{value}");
    }
}

/// What is no model file is not read to its end, if it has one.
#[cfg(unix)]
#[test]
fn devices_and_tables_are_refused_at_once() {
    for path in ["/dev/zero", "/dev/null"] {
        let error = ModelFile::load(Path::new(path)).unwrap_err().to_string();
        assert!(error.contains("not a model file"), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m");
    let bytes = example(Pairs::Lambda).to_bytes().unwrap();
    for (what, bytes) in [
        ("cut short", bytes[..bytes.len() - 3].to_vec()),
        ("too long", [&bytes[..], b"x"].concat()),
        ("cut in its header", bytes[..100].to_vec()),
        ("a header of 90 MB", [&90_000_000u64.to_le_bytes()[..], b"{}"].concat()),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let error = ModelFile::load(&path).unwrap_err().to_string();
        assert!(error.contains("not a model file"), "{what}: {error}");
    }
    for table in [&b"a,b\n1,2\n1,2\n"[..], b"PAR1 and so on", b"ARROW1\0\0 and so on"] {
        std::fs::write(&path, table).unwrap();
        let error = ModelFile::load(&path).unwrap_err().to_string();
        assert!(error.contains("looks like a table, not like a model"), "{error}");
    }
}
