//! The comparison as a page: the table, and how validation went.

use super::{ComparedFamily, Comparison, HEADS, cells, on, over, stopped};
use anyhow::{Context, Result};
use everytree_core::file::write_atomically;
use everytree_plot::{Chart, Mark, Panel, Scale, Series, escaped};
use std::path::Path;

/// Differences smaller than this are drawn as this, in nats: a logarithm has no place for none.
const LEAST: f64 = 1e-4;

pub fn write(to: &Path, train: &Path, comparison: &Comparison) -> Result<()> {
    let lines = &comparison.families;
    let title = format!("Families compared on {}", train.file_name().unwrap_or_default().to_string_lossy());
    let mut rows = String::new();
    for line in lines {
        let class = if line.difference.mean == 0.0 { " class=\"best\"" } else { "" };
        let cells: String = cells(line).iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
        rows += &format!("<tr{class}>{cells}</tr>\n");
    }
    let heads: String = HEADS.iter().map(|head| format!("<th>{}</th>", escaped(head))).collect();
    let stopped = stopped(lines).map_or(String::new(), |words| format!("<p>{words}</p>"));
    let page = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\n\
         <style>:root{{color-scheme:light dark}}body{{font:15px/1.5 sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem}}\
         table{{border-collapse:collapse;width:100%}}th,td{{padding:.25rem .6rem;text-align:right;border-bottom:1px solid #8886}}\
         th:first-child,td:first-child,th:last-child,td:last-child{{text-align:left}}.best{{font-weight:bold}}\
         .wide{{overflow-x:auto}}svg{{max-width:44rem;display:block;margin:2rem 0}}</style>\n\
         <h1>{title}</h1>\n<div class=\"wide\"><table><tr>{heads}</tr>\n{rows}</table></div>\n\
         <p>{}</p>{stopped}\n{}</html>\n",
        over(on(comparison)),
        curves(lines).svg(),
        title = escaped(&title),
    );
    write_atomically(to, page.as_bytes()).with_context(|| to.display().to_string())
}

/// How the validation of every family went, epoch by epoch: how far it is below the best of all.
fn curves(lines: &[ComparedFamily]) -> Chart {
    let epochs = || lines.iter().flat_map(|line| &line.history);
    let best = epochs().map(|epoch| epoch.valid).fold(f64::NEG_INFINITY, f64::max);
    let series = |(colour, line): (usize, &ComparedFamily)| {
        let point = |epoch: &everytree::Epoch| (epoch.epoch as f64, (best - epoch.valid).max(LEAST));
        let points = line.history.iter().map(point).collect();
        Series { name: line.family.clone(), colour, points }
    };
    Chart {
        title: "Validation through learning".to_owned(),
        x: ("epoch".to_owned(), Scale::Linear),
        y: ("nats a row below the best".to_owned(), Scale::Logarithmic),
        mark: Mark::Lines,
        across: 1,
        panels: vec![Panel {
            title: "of the size that was kept; lower is better".to_owned(),
            series: lines.iter().enumerate().map(series).collect(),
        }],
    }
}
