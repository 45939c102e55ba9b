//! Small charts as SVG files, readable on light and on dark pages.

use std::fmt::Write;

/// A line, or the tops of bars, with a name.
pub struct Series {
    /// In the legend.
    pub name: String,
    /// Where its colour is in the palette: the same in every panel.
    pub colour: usize,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
}

/// How numbers are laid out along an axis.
#[derive(Clone, Copy, PartialEq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By decades.
    Logarithmic,
}

/// What is drawn.
#[derive(Clone, Copy, PartialEq)]
pub enum Mark {
    /// Points joined by lines.
    Lines,
    /// Bars of this width, from zero.
    Bars(f64),
}

/// One frame with lines or bars in it.
pub struct Panel {
    /// Above it.
    pub title: String,
    /// What is in it.
    pub series: Vec<Series>,
}

/// Panels with the same axes.
pub struct Chart {
    /// Above everything.
    pub title: String,
    /// What is along the horizontal axis.
    pub x: (String, Scale),
    /// And along the vertical one.
    pub y: (String, Scale),
    /// Lines or bars.
    pub mark: Mark,
    /// Panels in a line.
    pub across: usize,
    /// One after the other.
    pub panels: Vec<Panel>,
}

/// Okabe and Ito's colours, which most people can tell apart.
const PALETTE: [&str; 8] =
    ["#d55e00", "#e69f00", "#0095d9", "#009e73", "#cc79a7", "#8c8c8c", "#b8a800", "#7a5cc9"];
const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 62.0;
const TOP: f64 = 30.0;
const GAP: f64 = 38.0;
const BELOW: f64 = 60.0;
/// Of a line of names.
const LEGEND: f64 = 18.0;

struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Axis {
    /// Wide enough for all of these.
    fn around(scale: Scale, values: impl Iterator<Item = f64>, from_zero: bool) -> Self {
        let values: Vec<f64> =
            values.filter(|x| x.is_finite() && (scale == Scale::Linear || *x > 0.0)).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = if values.is_empty() { (1.0, 10.0) } else { (low, high) };
        match scale {
            // Whole decades.
            Scale::Logarithmic => {
                let (low, high) = (low.log10().floor(), high.log10().ceil());
                Self { scale, low: 10f64.powf(low), high: 10f64.powf(high.max(low + 1.0)) }
            }
            Scale::Linear => {
                let low = if from_zero { 0.0 } else { low };
                Self { scale, low, high: if high > low { high } else { low + 1.0 } }
            }
        }
    }

    /// 0 at the low end, 1 at the high end.
    fn place(&self, x: f64) -> f64 {
        let at = |x: f64| if self.scale == Scale::Linear { x } else { x.max(self.low / 10.0).log10() };
        (at(x) - at(self.low)) / (at(self.high) - at(self.low))
    }

    fn ticks(&self) -> Vec<f64> {
        if self.scale == Scale::Logarithmic {
            let (low, high) = (self.low.log10().round() as i32, self.high.log10().round() as i32);
            let step = ((high - low) / 5).max(1);
            return (low..=high).filter(|k| (k - low) % step == 0).map(|k| 10f64.powi(k)).collect();
        }
        // 1, 2 or 5 times a power of ten, about five of them.
        let rough = (self.high - self.low) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].map(|x| x * power).into_iter().find(|x| *x >= rough).unwrap_or(rough);
        let first = (self.low / step).ceil() as i64;
        (first..).map(|k| k as f64 * step).take_while(|x| *x <= self.high * (1.0 + 1e-9)).collect()
    }

    fn label(&self, x: f64) -> String {
        match self.scale {
            Scale::Logarithmic => {
                let digit = |c: char| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(c as usize - '0' as usize).unwrap_or('⁻');
                let power = (x.log10().round() as i32).to_string();
                format!(
                    "10{}",
                    power.chars().map(|c| if c == '-' { '⁻' } else { digit(c) }).collect::<String>()
                )
            }
            Scale::Linear => format!("{}", (x * 1e6).round() / 1e6),
        }
    }
}

/// Text as it may stand in SVG and HTML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// One name below the chart.
struct Entry<'a> {
    name: &'a str,
    colour: usize,
    left: f64,
    line: usize,
}

impl Chart {
    /// Every name once, in as many lines as it takes.
    fn legend(&self, width: f64) -> Vec<Entry<'_>> {
        let mut entries: Vec<Entry<'_>> = Vec::new();
        let (mut left, mut line) = (LEFT, 0);
        for series in self.panels.iter().flat_map(|panel| &panel.series) {
            if entries.iter().any(|entry| entry.colour == series.colour && entry.name == series.name) {
                continue;
            }
            let room = 42.0 + 7.0 * series.name.chars().count() as f64;
            if left + room > width && left > LEFT {
                (left, line) = (LEFT, line + 1);
            }
            entries.push(Entry { name: &series.name, colour: series.colour, left, line });
            left += room;
        }
        entries
    }

    /// The picture.
    pub fn svg(&self) -> String {
        let all = || self.panels.iter().flat_map(|panel| &panel.series).flat_map(|series| &series.points);
        let bars = matches!(self.mark, Mark::Bars(_));
        // A bar has a right side, too.
        let width = if let Mark::Bars(width) = self.mark { width } else { 0.0 };
        let x = Axis::around(self.x.1, all().flat_map(|point| [point.0, point.0 + width]), false);
        let y = Axis::around(self.y.1, all().map(|point| point.1), bars);
        let across = self.across.min(self.panels.len()).max(1);
        let down = self.panels.len().div_ceil(across);
        let width = LEFT + across as f64 * (WIDTH + GAP);
        let legend = self.legend(width);
        let lines = legend.last().map_or(0, |entry| entry.line + 1);
        let chart = TOP + 26.0 + down as f64 * (HEIGHT + BELOW);
        let height = chart + 16.0 + LEGEND * lines as f64;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <style>.ink{{fill:#222}}.grid{{stroke:#bbb;stroke-opacity:.45}}.frame{{stroke:#777;fill:none}}\
             @media(prefers-color-scheme:dark){{.ink{{fill:#ddd}}.grid{{stroke:#888}}.frame{{stroke:#999}}}}</style>\n"
        );
        // To a string nothing can fail.
        let _ = writeln!(
            svg,
            "<text class=\"ink\" x=\"{LEFT}\" y=\"20\" font-size=\"15\">{}</text>",
            escaped(&self.title)
        );
        for (number, panel) in self.panels.iter().enumerate() {
            let left = LEFT + (number % across) as f64 * (WIDTH + GAP);
            let top = TOP + 26.0 + (number / across) as f64 * (HEIGHT + BELOW);
            let first = number % across == 0;
            self.panel(&mut svg, panel, (&x, &y), (left, top), first);
        }
        for Entry { name, colour, left, line } in legend {
            let (y, colour) = (chart + LEGEND * (line + 1) as f64 - 4.0, PALETTE[colour % PALETTE.len()]);
            let _ = writeln!(
                svg,
                "<rect x=\"{left}\" y=\"{:.1}\" width=\"18\" height=\"5\" fill=\"{colour}\"/>\
                 <text class=\"ink\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                y - 6.0,
                left + 24.0,
                y,
                escaped(name)
            );
        }
        svg + "</svg>\n"
    }

    fn panel(
        &self,
        svg: &mut String,
        panel: &Panel,
        (x, y): (&Axis, &Axis),
        (left, top): (f64, f64),
        first: bool,
    ) {
        let across = |value: f64| left + x.place(value) * WIDTH;
        let up = |value: f64| top + (1.0 - y.place(value)) * HEIGHT;
        let _ = writeln!(
            svg,
            "<text class=\"ink\" x=\"{left}\" y=\"{:.1}\">{}</text>",
            top - 6.0,
            escaped(&panel.title)
        );
        for tick in y.ticks() {
            let at = up(tick);
            let _ = writeln!(svg, "<path class=\"grid\" d=\"M{left} {at:.1}h{WIDTH}\"/>");
            if first {
                let _ = writeln!(
                    svg,
                    "<text class=\"ink\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                    left - 6.0,
                    at + 4.0,
                    y.label(tick)
                );
            }
        }
        for tick in x.ticks() {
            let at = across(tick);
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{at:.1} {top}v{HEIGHT}\"/>\
                 <text class=\"ink\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                top + HEIGHT + 15.0,
                x.label(tick)
            );
        }
        let _ = writeln!(
            svg,
            "<rect class=\"frame\" x=\"{left}\" y=\"{top}\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\
             <text class=\"ink\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            left + WIDTH / 2.0,
            top + HEIGHT + 32.0,
            escaped(&self.x.0)
        );
        if first {
            let (at, middle) = (left - 44.0, top + HEIGHT / 2.0);
            let _ = writeln!(
                svg,
                "<text class=\"ink\" transform=\"translate({at:.1} {middle:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
                escaped(&self.y.0)
            );
        }
        for series in &panel.series {
            let colour = PALETTE[series.colour % PALETTE.len()];
            match self.mark {
                Mark::Lines => {
                    let points: Vec<String> = series
                        .points
                        .iter()
                        .map(|&(a, b)| format!("{:.1},{:.1}", across(a), up(b)))
                        .collect();
                    let _ = writeln!(
                        svg,
                        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
                        points.join(" ")
                    );
                    for &(a, b) in &series.points {
                        let _ = writeln!(
                            svg,
                            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.4\" fill=\"{colour}\"/>",
                            across(a),
                            up(b)
                        );
                    }
                }
                Mark::Bars(width) => {
                    for &(a, b) in &series.points {
                        let (from, to, high) = (across(a), across(a + width), up(b));
                        let _ = writeln!(
                            svg,
                            "<rect x=\"{from:.1}\" y=\"{high:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\" fill-opacity=\".8\"/>",
                            (to - from - 0.5).max(0.5),
                            (top + HEIGHT - high).max(0.0)
                        );
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_inside_the_axis() {
        let linear = Axis { scale: Scale::Linear, low: 0.0, high: 3.7 };
        assert_eq!(linear.ticks(), [0.0, 1.0, 2.0, 3.0]);
        let decades = Axis::around(Scale::Logarithmic, [3e-4, 2.0, 0.0].into_iter(), false);
        assert_eq!((decades.low, decades.high), (1e-4, 10.0));
        assert_eq!(decades.label(1e-4), "10⁻⁴");
        assert!((decades.place(1e-4), decades.place(10.0)) == (0.0, 1.0));
    }

    #[test]
    fn every_series_is_drawn_and_every_text_is_escaped() {
        let series =
            |colour| Series { name: format!("a<{colour}"), colour, points: vec![(1.0, 1.0), (10.0, 0.1)] };
        let panel = |title: &str| Panel { title: title.to_owned(), series: vec![series(0), series(1)] };
        let chart = Chart {
            title: "x & y".to_owned(),
            x: ("samples".to_owned(), Scale::Logarithmic),
            y: ("error".to_owned(), Scale::Logarithmic),
            mark: Mark::Lines,
            across: 2,
            panels: vec![panel("one"), panel("two"), panel("three")],
        };
        let svg = chart.svg();
        assert_eq!(svg.matches("<polyline").count(), 6);
        assert_eq!(svg.matches("a&lt;0").count(), 1, "one entry in the legend");
        assert!(svg.contains("x &amp; y") && !svg.contains("NaN") && svg.ends_with("</svg>\n"));
        assert_eq!(svg.matches('<').count(), svg.matches('>').count());
    }
}
