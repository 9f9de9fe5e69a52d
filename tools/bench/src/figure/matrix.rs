//! A matrix in a picture: a cell for each series (from) and place on the axis (to), the darker the more.

use anyhow::{Result, anyhow};
use plotters::prelude::*;
use st_model::num::saturate;

use super::about::About;
use super::measured::{Measured, short};
use super::scale::{Area, Scale};

/// Least and most that is drawn.
const LIGHT: RGBColor = RGBColor(222, 235, 247);
const DARK: RGBColor = RGBColor(8, 48, 107);
/// Names at each axis, at most.
const NAMES: usize = 16;

/// What goes from whom to whom, of one program.
struct Cells<'a> {
    /// Who sends or receives, in the order of the axis.
    names: Vec<&'a str>,
    /// From, to, how much: numbers in `names`.
    cells: Vec<(usize, usize, f64)>,
}

impl<'a> Cells<'a> {
    fn of(about: &About, measured: &'a Measured, program: usize) -> Self {
        let found: Vec<(&str, &str, f64)> = about
            .drawn(measured)
            .flat_map(|s| {
                let to = measured.points(program, s).into_iter();
                to.map(move |(place, e)| (&measured.series[s][..], &measured.places[place][..], e.median))
            })
            .collect();
        let mut names: Vec<&str> = found.iter().flat_map(|(from, to, _)| [*from, *to]).collect();
        // Numbers by number.
        names.sort_by(|a, b| match (a.parse::<f64>(), b.parse::<f64>()) {
            (Ok(x), Ok(y)) => x.total_cmp(&y),
            _ => a.cmp(b),
        });
        names.dedup();
        let at = |name: &str| names.iter().position(|n| *n == name);
        let cells = found.iter().filter_map(|(from, to, n)| Some((at(from)?, at(to)?, *n))).collect();
        Self { names, cells }
    }
}

/// How dark a value is, 0 to 1, by its logarithm between the least and the most.
fn shade(value: f64, least: f64, most: f64) -> f64 {
    if most > least { ((value / least).ln() / (most / least).ln()).clamp(0.0, 1.0) } else { 1.0 }
}

fn colour(shade: f64) -> RGBColor {
    let between = |a: u8, b: u8| -> u8 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two bytes")]
        let mixed = (f64::from(a) + shade * (f64::from(b) - f64::from(a))).round() as u8;
        mixed
    };
    RGBColor(between(LIGHT.0, DARK.0), between(LIGHT.1, DARK.1), between(LIGHT.2, DARK.2))
}

fn at(n: usize) -> f64 {
    f64::from(saturate::<u32>(n))
}

/// Draws the matrix of a program. What is 0 is left white.
pub(super) fn panel(about: &About, measured: &Measured, program: usize, area: &Area<'_>) -> Result<()> {
    let failed = |e: &dyn std::fmt::Display| anyhow!("drawing: {e}");
    let of = Cells::of(about, measured, program);
    let values = || of.cells.iter().map(|(_, _, n)| *n).filter(|n| *n > 0.0);
    let (least, most) = values().fold((f64::INFINITY, 0.0_f64), |(a, b), n| (a.min(n), b.max(n)));
    let title = if most > 0.0 {
        format!("{}: {} to {} {}", measured.programs[program], short(least), short(most), about.y.name)
    } else {
        format!("{}: nothing", measured.programs[program])
    };
    let (side, every) = (at(of.names.len().max(1)), of.names.len().div_ceil(NAMES).max(1));
    let names: Vec<String> = of
        .names
        .iter()
        .enumerate()
        .map(|(i, name)| if i % every == 0 { (*name).to_owned() } else { String::new() })
        .collect();
    // Cells are around the numbers of their names; the first row is on top.
    let across = Scale { from: -0.5, to: side - 0.5, log: false, names: names.clone() };
    let downward = Scale { from: side - 0.5, to: -0.5, log: false, names };
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 16))
        .margin(8)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(across, downward)
        .map_err(|e| failed(&e))?;
    chart
        .configure_mesh()
        .disable_mesh()
        .x_desc(format!("to {}", about.x.name))
        .y_desc(format!("from {}", about.x.name))
        .draw()
        .map_err(|e| failed(&e))?;
    let cells = of.cells.iter().filter(|(_, _, n)| *n > 0.0).map(|(from, to, n)| {
        let (x, y) = (at(*to), at(*from));
        let corners = [(x - 0.5, y - 0.5), (x + 0.5, y + 0.5)];
        Rectangle::new(corners, colour(shade(*n, least, most)).filled())
    });
    chart.draw_series(cells).map_err(|e| failed(&e))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_by_the_numbers_of_who_sends_and_receives() {
        let mut all = Measured::default();
        let rows = "program,series,x,run,value\na,10,2,1,7\na,2,10,1,3\na,sum,10,1,99\nb,1,1,1,5\n";
        all.read(rows.as_bytes()).unwrap();
        let about = r#"{"title":"","source":"","paper":"","x":{"name":"rank"},"y":{"name":"messages"},"matrix":true,"told":["sum"],"claims":[]}"#;
        let about: About = serde_json::from_str(about).unwrap();
        let of = Cells::of(&about, &all, 0);
        assert_eq!(of.names, ["2", "10"]);
        assert_eq!(of.cells, [(1, 0, 7.0), (0, 1, 3.0)]);
    }

    #[test]
    fn the_most_is_the_darkest() {
        assert_eq!(colour(shade(100.0, 1.0, 100.0)), DARK);
        assert_eq!(colour(shade(1.0, 1.0, 100.0)), LIGHT);
        assert!((shade(10.0, 1.0, 100.0) - 0.5).abs() < 1e-9);
        assert_eq!(colour(shade(3.0, 3.0, 3.0)), DARK, "all the same");
    }
}
