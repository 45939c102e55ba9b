//! What `everytree fit` comes to with nothing said, beside every family at its own defaults: paired differences over test rows.

use crate::table1::{machine, program};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use everytree_core::file::write_atomically;
use nix::sys::resource::{UsageWho, getrusage};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Fit every table with nothing said, and with every family; a line for each, with the difference to the former.
///
/// Tables are pairs of files NAME_train.csv and NAME_test.csv (or .csv.gz), and folders NAME with NAME.train.data.gz,
/// NAME.valid.data.gz and NAME.test.data.gz. What is in the file of results already is not done again.
#[derive(Args)]
#[command(
    after_help = "Example:\n  everytree-experiments defaults --tables tables --out defaults.csv --only titanic,wine --splits 5"
)]
pub struct Defaults {
    /// Where the tables are.
    #[arg(long, value_name = "FOLDER")]
    tables: PathBuf,
    /// The file of results.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Which of them.
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', required = true)]
    only: Vec<String>,
    /// Families beside; auto+kernel: the default, with a kernel over stored rows.
    #[arg(
        long,
        value_name = "NAME,NAME",
        value_delimiter = ',',
        default_value = "auto+kernel,independent,chow-liu,mixture-of-trees,hclt,moat,directed"
    )]
    families: Vec<String>,
    /// Splits of tables of two files: the first as they are, the others of all rows, shuffled.
    #[arg(long, value_name = "N", default_value_t = 1)]
    splits: u64,
    /// Seconds that one fit may take; what is stopped says so.
    #[arg(long, value_name = "N", default_value_t = 600)]
    timeout: u64,
    /// More arguments for every `everytree fit`.
    #[arg(last = true)]
    more: Vec<String>,
}

const COLUMNS: &str = "table,split,family,test_ll,to_default,standard_error,valid_ll,cpu_seconds,work,members,parameters,stopped";

/// The files of one split.
struct Split {
    train: PathBuf,
    valid: Option<PathBuf>,
    test: PathBuf,
    number: u64,
}

impl Defaults {
    pub fn run(&self) -> Result<()> {
        let mut lines: Vec<String> = match fs::read_to_string(&self.out) {
            Ok(text) => text.lines().map(str::to_owned).collect(),
            Err(_) => vec![
                format!("# everytree {}, {}", env!("CARGO_PKG_VERSION"), machine()),
                format!(
                    "# everytree-experiments defaults: everytree fit TRAIN [--valid VALID] --test TEST [--family NAME] {}",
                    self.more.join(" ")
                )
                .trim_end()
                .to_owned(),
                COLUMNS.to_owned(),
            ],
        };
        if lines.get(2).map(String::as_str) != Some(COLUMNS) {
            bail!("{} is another table; give it another name", self.out.display());
        }
        let folder = std::env::temp_dir().join(format!("everytree-defaults-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        for name in &self.only {
            for split in self.splits_of(name, &folder)? {
                let is_done = |family: &str, lines: &[String]| {
                    let begin = format!("{name},{},{family},", split.number);
                    lines.iter().any(|line| line.starts_with(&begin))
                };
                if is_done("auto", &lines) && self.families.iter().all(|family| is_done(family, &lines)) {
                    continue;
                }
                // The default is needed again for differences, where it is there already.
                let (auto, scores) = self.fit(&split, "auto", &folder).context("auto")?;
                if !is_done("auto", &lines) {
                    lines.push(line(name, &split, "auto", &auto, &scores, &scores)?);
                    println!("{}", lines[lines.len() - 1]);
                }
                for family in &self.families {
                    if is_done(family, &lines) {
                        continue;
                    }
                    let (fit, own) = self.fit(&split, family, &folder).with_context(|| family.clone())?;
                    lines.push(line(name, &split, family, &fit, &own, &scores)?);
                    println!("{}", lines[lines.len() - 1]);
                    write_atomically(&self.out, (lines.join("\n") + "\n").as_bytes())?;
                }
                write_atomically(&self.out, (lines.join("\n") + "\n").as_bytes())?;
            }
        }
        fs::remove_dir_all(&folder)?;
        Ok(())
    }

    fn splits_of(&self, name: &str, folder: &Path) -> Result<Vec<Split>> {
        let twenty = |part: &str| self.tables.join(name).join(format!("{name}.{part}.data.gz"));
        if twenty("train").exists() {
            let (train, valid, test) = (twenty("train"), Some(twenty("valid")), twenty("test"));
            return Ok(vec![Split { train, valid, test, number: 0 }]);
        }
        let pair = |part: &str| -> Result<PathBuf> {
            let endings = ["csv.gz", "csv"];
            let mut paths = endings.iter().map(|ending| self.tables.join(format!("{name}_{part}.{ending}")));
            paths.find(|path| path.exists()).ok_or_else(|| anyhow!("there is no {name}_{part}.csv"))
        };
        let (train, test) = (pair("train")?, pair("test")?);
        let mut splits = vec![Split { train: train.clone(), valid: None, test: test.clone(), number: 0 }];
        let (head, mut rows) = lines_of(&train)?;
        let (_, others) = lines_of(&test)?;
        let held_out = others.len();
        rows.extend(others);
        for number in 1..self.splits {
            let mut rows = rows.clone();
            rows.shuffle(&mut Pcg64::seed_from_u64(number));
            let write = |part: &str, rows: &[String]| -> Result<PathBuf> {
                let path = folder.join(format!("{name}-{number}-{part}.csv"));
                fs::write(&path, format!("{head}\n{}\n", rows.join("\n")))?;
                Ok(path)
            };
            let (test, train) = rows.split_at(held_out);
            splits.push(Split {
                train: write("train", train)?,
                valid: None,
                test: write("test", test)?,
                number,
            });
        }
        Ok(splits)
    }

    /// What a fit says, and the log-likelihood of every test row.
    fn fit(&self, split: &Split, family: &str, folder: &Path) -> Result<(Value, Vec<f64>)> {
        let (model, scores) = (folder.join("model.everytree"), folder.join("scores.csv"));
        let mut command = Command::new(program()?);
        command.arg("fit").arg(&split.train).args(["--json", "--quiet", "--unknown", "unobserved"]);
        let (family, kernel) = match family.split_once('+') {
            Some((family, kernel)) => (family, Some(format!("--{kernel}"))),
            None => (family, None),
        };
        command.args(kernel);
        command.args(["--family", family, "--timeout", &format!("{}s", self.timeout), "--out"]).arg(&model);
        command.arg("--test").arg(&split.test).args(&self.more);
        if let Some(valid) = &split.valid {
            command.arg("--valid").arg(valid);
        }
        let before = processor_seconds()?;
        let output = command.output()?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr));
        }
        let seconds = processor_seconds()? - before;
        let mut score = Command::new(program()?);
        score.arg("score").arg(&model).arg(&split.test).args([
            "--unknown",
            "unobserved",
            "--missing-as-state",
        ]);
        let scored = score.arg("--out").arg(&scores).output()?;
        if !scored.status.success() {
            bail!("{}", String::from_utf8_lossy(&scored.stderr));
        }
        let text = fs::read_to_string(&scores)?;
        let row = |line: &str| line.split(',').nth(1).and_then(|cell| cell.parse().ok());
        let logs: Option<Vec<f64>> = text.lines().skip(1).map(row).collect();
        let mut report: Value = serde_json::from_slice(&output.stdout)?;
        report["cpu_seconds"] = seconds.into();
        Ok((report, logs.ok_or_else(|| anyhow!("scores that are no numbers"))?))
    }
}

/// Processor time of all children so far: it says the same on a busy machine.
fn processor_seconds() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// The first line of a table, and the others.
fn lines_of(path: &Path) -> Result<(String, Vec<String>)> {
    let output = match path.extension().is_some_and(|ending| ending == "gz") {
        true => String::from_utf8(Command::new("gzip").arg("-dc").arg(path).output()?.stdout)?,
        false => fs::read_to_string(path)?,
    };
    let mut lines = output.lines().map(str::to_owned);
    let head = lines.next().ok_or_else(|| anyhow!("{} is empty", path.display()))?;
    Ok((head, lines.collect()))
}

/// A line of the results: the difference is to the default, positive where that is worse.
fn line(name: &str, split: &Split, family: &str, fit: &Value, own: &[f64], auto: &[f64]) -> Result<String> {
    if own.len() != auto.len() {
        bail!("scores of different rows");
    }
    let differences: Vec<f64> = own.iter().zip(auto).map(|(own, auto)| own - auto).collect();
    let rows = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / rows;
    let squares: f64 = differences.iter().map(|difference| (difference - mean).powi(2)).sum();
    let error = (squares / (rows - 1.0).max(1.0) / rows).sqrt();
    let test = own.iter().sum::<f64>() / rows;
    let work: f64 = fit["candidates"]
        .as_array()
        .map_or(0.0, |all| all.iter().filter_map(|tried| tried["work"].as_f64()).sum());
    Ok(format!(
        "{name},{},{family},{test:.4},{mean:.4},{error:.4},{:.4},{:.1},{work:.3e},{},{},{}",
        split.number,
        fit["valid_ll"].as_f64().unwrap_or(f64::NAN),
        fit["cpu_seconds"].as_f64().unwrap_or(f64::NAN),
        fit["members"].as_array().map_or(1, Vec::len),
        fit["parameters"],
        fit["stopped"].as_str().unwrap_or(""),
    ))
}
