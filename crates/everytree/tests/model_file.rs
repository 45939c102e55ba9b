//! The model file: what is written is read, and nothing else gets through.

use everytree::file::{
    Checkpoint, ContentError, FORMAT, FileError, ModelFile, Provenance, Results, TableFacts,
};
use everytree::forest::Cpu;
use everytree::learn::{Epoch, Settings, State, evaluate};
use everytree::model::{Learnable, Moat, Pairs};
use everytree::schema::{Schema, States, Variable};
use everytree::table::Table;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::path::Path;

fn example(pairs: Pairs) -> ModelFile {
    let variable =
        |name: &str, states: States, missing: bool| Variable { name: name.to_owned(), states, missing };
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
    let facts = TableFacts { rows: 100, unique_rows: 60, fingerprint: "00c0ffee00c0ffee".into() };
    ModelFile {
        model,
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
                history: vec![
                    Epoch { epoch: 0, train: -5.0, valid: -5.0 },
                    Epoch { epoch: 1, train: -4.5, valid: -4.625 },
                ],
            }),
        },
        edge_posteriors: Some(vec![0.4; 10]),
    }
}

#[test]
fn what_is_written_is_read() {
    for pairs in [Pairs::Lambda, Pairs::Sinkhorn, Pairs::Tables] {
        let file = example(pairs);
        let bytes = file.to_bytes();
        assert_eq!(bytes, example(pairs).to_bytes(), "the same bytes every time");
        assert_eq!(ModelFile::from_bytes(&bytes).unwrap(), file);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.everytree");
    example(Pairs::Lambda).save(&path).unwrap();
    assert_eq!(ModelFile::load(&path).unwrap(), example(Pairs::Lambda));
}

/// Format 1 as the first version wrote it; every later version must read it.
#[test]
fn the_golden_file_of_format_1_is_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/format-1.everytree");
    if std::env::var_os("EVERYTREE_WRITE_GOLDEN").is_some() {
        example(Pairs::Lambda).save(&path).unwrap();
    }
    let file = ModelFile::load(&path).unwrap();
    assert_eq!(file, example(Pairs::Lambda));
    let mut table = Table::new(file.model.states());
    table.push(&[1, 3, 0, 2, 1]);
    let found = evaluate(&file.model, &table.unique(), &Cpu::<f64>::new()).unwrap().mean;
    assert!((found - GOLDEN).abs() < 1e-12, "{found}");
}

/// log p of that row under that model.
const GOLDEN: f64 = -5.6328297792342905;

fn content(bytes: &[u8]) -> ContentError {
    ModelFile::from_bytes(bytes).unwrap_err()
}

/// The file with its description changed.
fn redescribed(change: impl Fn(&mut serde_json::Value)) -> Vec<u8> {
    let bytes = example(Pairs::Lambda).to_bytes();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let mut description: serde_json::Value =
        serde_json::from_str(header["__metadata__"]["everytree"].as_str().unwrap()).unwrap();
    change(&mut description);
    header["__metadata__"]["everytree"] = description.to_string().into();
    let mut header = header.to_string().into_bytes();
    header.resize(header.len().next_multiple_of(8), b' ');
    [&(header.len() as u64).to_le_bytes()[..], &header, &bytes[8 + length..]].concat()
}

#[test]
fn damaged_and_foreign_files_are_told_apart() {
    let bytes = example(Pairs::Lambda).to_bytes();
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
    assert!(matches!(content(&redescribed(|d| d["family"] = "oak".into())), ContentError::Description(_)));
    assert!(matches!(content(&redescribed(|d| d["schema"] = 3.into())), ContentError::Description(_)));
    let shorter = redescribed(|d| drop(d["schema"]["variables"].as_array_mut().unwrap().pop()));
    assert!(matches!(content(&shorter), ContentError::Model(_)));
    let disorder = redescribed(|d| d["schema"]["variables"][1]["states"]["integers"] = vec![3, 2, 1].into());
    assert!(matches!(content(&disorder), ContentError::Model(_)));
    let twice = redescribed(|d| d["schema"]["variables"][1]["name"] = "smoker".into());
    assert!(matches!(content(&twice), ContentError::Model(_)));
    assert!(matches!(content(&redescribed(|d| d["pairs"] = "sinkhorn".into())), ContentError::Tensor { .. }));
    // The last eight bytes are a parameter.
    let mut nan = bytes.clone();
    let end = nan.len();
    nan[end - 8..].copy_from_slice(&f64::NAN.to_le_bytes());
    assert!(matches!(content(&nan), ContentError::Tensor { .. }));
    let missing = ModelFile::load(Path::new("no such file")).unwrap_err();
    assert!(matches!(missing, FileError::Io { .. }));
}

/// Changes a whole file at random; the loader may refuse it, or read it, but nothing else.
fn mutate(bytes: &mut Vec<u8>, rng: &mut Pcg64) {
    for _ in 0..rng.random_range(1..6) {
        let place = rng.random_range(0..bytes.len().max(1)).min(bytes.len().saturating_sub(1));
        // Most of what can go wrong is in the header.
        let place = if rng.random_bool(0.7) { place % 2048.min(bytes.len()) } else { place };
        match rng.random_range(0..6) {
            0 => bytes[place] ^= 1 << rng.random_range(0..8),
            1 => bytes[place] = rng.random(),
            2 => bytes.truncate(place.max(1)),
            3 => bytes.insert(place, rng.random_range(32..127)),
            4 => drop(bytes.remove(place)),
            _ => {
                let end = (place + rng.random_range(1..40)).min(bytes.len());
                let piece = bytes[place..end].to_vec();
                let to = rng.random_range(0..bytes.len());
                bytes.splice(to..to, piece);
            }
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
}

fn fuzz(seed: u64, rounds: u64) {
    let originals = [Pairs::Lambda, Pairs::Sinkhorn, Pairs::Tables].map(|pairs| example(pairs).to_bytes());
    let model = example(Pairs::Lambda);
    let mut state = State::new(model.model);
    state.history = model.provenance.results.unwrap().history;
    let facts = model.provenance.train.unwrap();
    let checkpoint = Checkpoint {
        state,
        settings: Settings::paper(5),
        precision: "f32".into(),
        schema: model.schema,
        train: facts.clone(),
        valid: facts,
        holdout: Some(0.1),
    };
    let checkpoint = checkpoint.to_bytes();
    assert!(Checkpoint::from_bytes(&checkpoint).is_ok());
    for round in 0..rounds {
        let mut rng = Pcg64::seed_from_u64(seed.wrapping_add(round));
        let mut bytes = originals[rng.random_range(0..3)].clone();
        mutate(&mut bytes, &mut rng);
        let mut damaged = checkpoint.clone();
        mutate(&mut damaged, &mut rng);
        if let Ok(read) = Checkpoint::from_bytes(&damaged) {
            assert!(read.state.best_epoch().is_none_or(|best| best.epoch <= read.state.epochs()));
        }
        if let Ok(file) = ModelFile::from_bytes(&bytes) {
            let cpu = Cpu::<f64>::new();
            let mut table = Table::new(file.model.states());
            table.push(&vec![0; file.model.states().len()]);
            if let Ok(mut ready) = file.model.ready(&cpu) {
                let mut out = [0.0];
                file.model.log_likelihood(&cpu, &mut ready, table.codes(), &mut out).unwrap();
                assert!(!out[0].is_nan(), "seed {}", seed.wrapping_add(round));
            }
        }
    }
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
