//! The same table in every format; headers, labels and cells that do not fit.

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int32Array, RecordBatch, StringArray, UInt8Array};
use arrow_schema::{DataType, Field, Schema as ArrowSchema};
use everytree_core::data::Table;
use everytree_core::data::scan::{Notice, ScanSettings};
use everytree_core::data::{Schema, States};
use everytree_read::{CellRules, Header, Problem, ReadSettings, read_dataset, scan_tables};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const RULES: CellRules =
    CellRules { missing_is_a_state: true, unknown_is_unobserved: false, incomplete_rows: false };

fn scan(path: &Path) -> (Schema, Vec<Notice>) {
    let scanned = scan_tables(path.into(), &[], &ReadSettings::default(), &ScanSettings::default()).unwrap();
    (scanned.schema, scanned.notices)
}

fn read(path: &Path) -> (Schema, Table) {
    let (schema, _) = scan(path);
    let table = read_dataset(path, &Arc::new(schema.clone()), &ReadSettings::default(), RULES)
        .unwrap()
        .0
        .table()
        .clone();
    (schema, table)
}

fn write(folder: &tempfile::TempDir, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    path
}

/// Words, a dictionary of words, integers of two widths, reals and truth values; each with a gap.
fn batch() -> RecordBatch {
    let mut words = StringDictionaryBuilder::<Int32Type>::new();
    ["b", "a", "b"].into_iter().for_each(|word| words.append_value(word));
    words.append_null();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("word", Arc::new(StringArray::from(vec![Some("x"), None, Some("y"), Some("x")]))),
        ("coded", Arc::new(words.finish())),
        ("number", Arc::new(Int32Array::from(vec![Some(10), Some(9), None, Some(10)]))),
        ("small", Arc::new(UInt8Array::from(vec![Some(1), Some(0), Some(1), None]))),
        ("real", Arc::new(Float64Array::from(vec![Some(0.5), Some(f64::NAN), Some(2.0), Some(0.5)]))),
        ("truth", Arc::new(BooleanArray::from(vec![Some(true), None, Some(true), Some(true)]))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

const AS_TEXT: &str = "word,coded,number,small,real,truth\n\
                       x,b,10,1,0.5,true\n,a,9,0,,\ny,b,,1,2.0,true\nx,,10,,0.5,true\n";

#[test]
fn parquet_arrow_and_csv_hold_the_same_table() {
    let folder = tempfile::tempdir().unwrap();
    let batch = batch();
    let parquet = folder.path().join("t.parquet");
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(File::create(&parquet).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let arrow = folder.path().join("t.arrow");
    let mut writer =
        arrow_ipc::writer::FileWriter::try_new(File::create(&arrow).unwrap(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let csv = write(&folder, "t.csv", AS_TEXT);

    let (schema, table) = read(&csv);
    assert_eq!(table.rows(), 4);
    assert_eq!(schema.variables[2].states, States::Integers(vec![9, 10]));
    assert_eq!(schema.variables[3].states, States::Integers(vec![0, 1]));
    assert_eq!(schema.variables[4].states, States::Reals(vec![0.5, 2.0]));
    assert_eq!(schema.variables[5].states, States::Booleans(["false".into(), "true".into()]));
    assert!(schema.variables.iter().all(|variable| variable.missing));
    for other in [&parquet, &arrow] {
        let (found, rows) = read(other);
        assert_eq!(found, schema);
        assert_eq!(rows, table);
        // A model of one format reads files of another.
        assert_eq!(
            read_dataset(other, &Arc::new(schema.clone()), &ReadSettings::default(), RULES)
                .unwrap()
                .0
                .table()
                .clone(),
            table
        );
    }
}

#[test]
fn a_type_without_states_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let field = Field::new("when", DataType::Date32, true);
    let schema = Arc::new(ArrowSchema::new(vec![field, Field::new("b", DataType::Boolean, true)]));
    let columns: Vec<ArrayRef> =
        vec![Arc::new(arrow_array::Date32Array::from(vec![1])), Arc::new(BooleanArray::from(vec![true]))];
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(File::create(&path).unwrap(), schema, None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let error =
        scan_tables((&path).into(), &[], &ReadSettings::default(), &ScanSettings::default()).unwrap_err();
    assert!(
        matches!(error.problem, Problem::UnsupportedType { ref column, .. } if column == "when"),
        "{error}"
    );
}

#[test]
fn headers_are_seen_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let header = |name: &str, content: &str| scan(&write(&folder, name, content)).0.header;
    assert!(header("a.csv", "a,b\n0,1\n1,0\n"));
    assert!(!header("b.csv", "0,1\n1,0\n"));
    assert!(!header("c.csv", "x,y\ny,x\nx,y\ny,x\n"), "words that occur below are values");
    assert!(header("d.csv", "x,z\ny,x\nx,y\n"), "z does not occur below");
    assert!(!header("e.csv", "0.5,\n1,0\n"), "a gap among numbers");
    assert!(!header("f.data", "a,b\n0,1\n1,0\n"), "this form never has one");
    let settings = ReadSettings { header: Header::No, ..ReadSettings::default() };
    let path = write(&folder, "g.csv", "a,b\n0,1\n1,0\n");
    assert!(!scan_tables((&path).into(), &[], &settings, &ScanSettings::default()).unwrap().schema.header);
}

#[test]
fn labels_come_from_training_and_validation_and_columns_are_found_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let train = write(&folder, "t.csv", "a,b\nred,1\nblue,2\n");
    let valid = write(&folder, "v.csv", "extra,b,a\n?,3,green\n7,1,red\n");
    let scanned =
        scan_tables((&train).into(), &[(&valid).into()], &ReadSettings::default(), &ScanSettings::default())
            .unwrap();
    assert_eq!(scanned.schema.variables[0].labels(), ["blue", "green", "red"]);
    assert_eq!(scanned.schema.variables[1].labels(), ["1", "2", "3"]);
    let rows = read_dataset(&valid, &Arc::new(scanned.schema.clone()), &ReadSettings::default(), RULES)
        .unwrap()
        .0
        .table()
        .clone();
    assert_eq!((rows.get(0, 0), rows.get(0, 1), rows.get(1, 0), rows.get(1, 1)), (1, 2, 2, 0));
    let (_, facts) =
        read_dataset(&valid, &Arc::new(scanned.schema.clone()), &ReadSettings::default(), RULES).unwrap();
    assert_eq!((facts.rows, facts.ignored), (2, vec!["extra".to_owned()]));
}

#[test]
fn blanks_around_fields_do_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let (schema, table) = read(&write(&folder, "t.csv", "a, b \n x , 1\ny,?\n x,01\n"));
    assert_eq!(schema.variables[1].name, "b");
    assert_eq!(schema.variables[0].labels(), ["x", "y"]);
    assert_eq!(table.get(0, 1), table.get(2, 1));
    assert!(schema.variables[1].missing);
}

#[test]
fn lines_are_counted_as_editors_count_them() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: &Path| {
        let scanned = scan_tables(path.into(), &[], &ReadSettings::default(), &ScanSettings::default());
        scanned.err().unwrap().to_string()
    };
    let bad = "a,b\nx,1\n\n\"two\nlines\",2\n\ny\nz,3\n";
    for text in [bad.to_owned(), bad.replace('\n', "\r\n"), bad.replace("y\nz,3\n", "y")] {
        let path = write(&folder, "t.csv", &text);
        let problem = refused(&path);
        assert!(problem.contains("line 7"), "{text:?}: {problem}");
    }
    let first = write(&folder, "t.csv", "a,b\r\nx\r\n");
    let problem = refused(&first);
    assert!(problem.contains("line 2"), "{problem}");
}

/// The form of the benchmark data: zeros and ones, no header, compressed, with columns constant in training.
#[test]
fn zeros_and_ones_without_header() {
    let folder = tempfile::tempdir().unwrap();
    let train = write(&folder, "t.train.data", "0,1,0\n0,1,1\n0,1,0\n");
    let test = write(&folder, "t.test.data", "1,0,1\n");
    let (schema, notices) = scan(&train);
    assert_eq!(schema.states(), [2, 2, 2]);
    assert_eq!(notices, [Notice::Constant { columns: vec!["x0".into(), "x1".into()] }]);
    let rows = read_dataset(&test, &Arc::new(schema.clone()), &ReadSettings::default(), RULES)
        .unwrap()
        .0
        .table()
        .clone();
    assert_eq!((rows.get(0, 0), rows.get(0, 1), rows.get(0, 2)), (1, 0, 1));
}
