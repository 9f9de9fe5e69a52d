//! A picture: a panel for each program, a line for each series.

use anyhow::{Result, anyhow};
use plotters::prelude::*;
use st_model::num::saturate;

use super::about::About;
use super::matrix;
use super::measured::Measured;
use super::scale::{Area, Scale};
use crate::stats::Estimate;

/// Size of a panel without its legend, in pixels, and how many stand side by side.
const PANEL: (u32, u32) = (560, 340);
const ACROSS: usize = 2;
/// Height of a line of a legend, and how many names stand side by side in it.
const LINE: u32 = 16;
const NAMES: usize = 2;
/// Room for the title.
const HEAD: u32 = 40;

/// Colours that are told apart by who is colour-blind, too (Okabe and Ito 2008), and grey.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    RGBColor(150, 150, 150),
];

/// The picture as SVG. The same values give the same bytes.
pub(super) fn svg(about: &About, measured: &Measured) -> Result<String> {
    let mut text = String::new();
    // Of a program of which things are only told there is no picture.
    let has = |program: &usize| about.drawn(measured).any(|s| !measured.points(*program, s).is_empty());
    let shown: Vec<usize> = (0..measured.programs.len()).filter(has).collect();
    let colours = colours(about, measured);
    let legend = shown.iter().map(|p| lines(about, measured, *p)).max().unwrap_or(0);
    let across = shown.len().clamp(1, ACROSS);
    let down = shown.len().div_ceil(across).max(1);
    let size = (PANEL.0 * saturate::<u32>(across), HEAD + (PANEL.1 + legend) * saturate::<u32>(down));
    {
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        let failed = |e: &dyn std::fmt::Display| anyhow!("drawing: {e}");
        root.fill(&WHITE).map_err(|e| failed(&e))?;
        let body = root.titled(&about.title, ("sans-serif", 22)).map_err(|e| failed(&e))?;
        for (program, area) in shown.iter().zip(&body.split_evenly((down, across))) {
            if about.matrix {
                matrix::panel(about, measured, *program, area)?;
            } else {
                panel(about, measured, *program, &colours, area)?;
            }
        }
        root.present().map_err(|e| failed(&e))?;
    }
    Ok(text)
}

/// Which series have something to show of a program.
fn present(about: &About, measured: &Measured, program: usize) -> Vec<usize> {
    about.drawn(measured).filter(|s| !measured.points(program, *s).is_empty()).collect()
}

/// Height of a panel's legend.
fn lines(about: &About, measured: &Measured, program: usize) -> u32 {
    if about.matrix {
        0
    } else {
        LINE * saturate::<u32>(present(about, measured, program).len().div_ceil(NAMES))
    }
}

/// A colour for each series: the same in all panels, and in none that of another one, as far as there are colours.
fn colours(about: &About, measured: &Measured) -> Vec<RGBColor> {
    let panels: Vec<Vec<usize>> = (0..measured.programs.len()).map(|p| present(about, measured, p)).collect();
    let mut chosen: Vec<usize> = Vec::new();
    for series in 0..measured.series.len() {
        let beside: Vec<usize> = panels.iter().filter(|p| p.contains(&series)).flatten().copied().collect();
        let taken = |colour: &usize| {
            chosen.iter().enumerate().any(|(other, its)| its == colour && beside.contains(&other))
        };
        chosen.push((0..COLOURS.len()).find(|colour| !taken(colour)).unwrap_or(series % COLOURS.len()));
    }
    chosen.into_iter().map(|colour| COLOURS[colour]).collect()
}

fn panel(
    about: &About,
    measured: &Measured,
    program: usize,
    colours: &[RGBColor],
    area: &Area<'_>,
) -> Result<()> {
    let failed = |e: &dyn std::fmt::Display| anyhow!("drawing: {e}");
    let axis = measured.axis();
    let all: Vec<(usize, Vec<(usize, Estimate)>)> =
        present(about, measured, program).into_iter().map(|s| (s, measured.points(program, s))).collect();
    let names: Vec<(&str, RGBColor)> =
        all.iter().map(|(s, _)| (&measured.series[*s][..], colours[*s])).collect();
    let (plot, below) = area.split_vertically(area.dim_in_pixel().1 - lines(about, measured, program));
    legend(&names, &below)?;
    let points = || all.iter().flat_map(|(_, points)| points);
    let numbers = measured.places.iter().all(|p| p.parse::<f64>().is_ok());
    let places = if numbers { Vec::new() } else { measured.places.clone() };
    let across = Scale::around(points().map(|(place, _)| axis[*place]), about.x.log && numbers, places);
    let upward = Scale::around(points().flat_map(|(_, e)| [e.low, e.high]), about.y.log, Vec::new());
    let mut chart = ChartBuilder::on(&plot)
        .caption(&measured.programs[program], ("sans-serif", 16))
        .margin(8)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(across, upward)
        .map_err(|e| failed(&e))?;
    chart
        .configure_mesh()
        .x_desc(&about.x.name)
        .y_desc(about.y.of(&measured.programs[program]))
        .light_line_style(TRANSPARENT)
        .draw()
        .map_err(|e| failed(&e))?;
    for (series, points) in &all {
        let colour = colours[*series];
        let line: Vec<(f64, f64)> = points.iter().map(|(place, e)| (axis[*place], e.median)).collect();
        chart.draw_series(LineSeries::new(line.clone(), colour.stroke_width(2))).map_err(|e| failed(&e))?;
        chart
            .draw_series(line.into_iter().map(|at| Circle::new(at, 3, colour.filled())))
            .map_err(|e| failed(&e))?;
        let spread = points.iter().filter(|(_, e)| e.low < e.high);
        let bars = spread.map(|(place, e)| {
            PathElement::new([(axis[*place], e.low), (axis[*place], e.high)], colour.stroke_width(1))
        });
        chart.draw_series(bars).map_err(|e| failed(&e))?;
    }
    Ok(())
}

/// What each colour is, below a panel.
fn legend(names: &[(&str, RGBColor)], area: &Area<'_>) -> Result<()> {
    let failed = |e: &dyn std::fmt::Display| anyhow!("drawing: {e}");
    let saturated = |n: usize| saturate::<i32>(n);
    let width = saturate::<i32>(area.dim_in_pixel().0) / saturated(NAMES);
    for (i, (name, colour)) in names.iter().enumerate() {
        let x = 16 + saturated(i % NAMES) * width;
        let y = saturated(i / NAMES) * saturate::<i32>(LINE) + 4;
        let line = PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2));
        area.draw(&line).map_err(|e| failed(&e))?;
        area.draw(&Text::new(*name, (x + 24, y - 5), ("sans-serif", 11))).map_err(|e| failed(&e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_names_what_it_shows_and_is_the_same_again() {
        let mut all = Measured::default();
        let rows = "program,series,x,run,value\na,first,16,1,10\na,first,64,1,11\na,second,64,1,4000\nb,first,16,1,3\n";
        all.read(rows.as_bytes()).unwrap();
        let about = r#"{"title":"Sizes","source":"","paper":"","x":{"name":"ranks","log":true},"y":{"name":"bytes","log":true},"claims":[]}"#;
        let about: About = serde_json::from_str(about).unwrap();
        let drawn = svg(&about, &all).unwrap();
        for word in ["Sizes", "first", "second", "ranks", "bytes", "<svg"] {
            assert!(drawn.contains(word), "{word}");
        }
        assert_eq!(drawn, svg(&about, &all).unwrap());
    }

    #[test]
    fn series_that_share_a_panel_have_colours_of_their_own() {
        let mut all = Measured::default();
        // More series than colours, of which each panel has two.
        let rows: String =
            (0..2 * COLOURS.len()).map(|n| format!("p{n},s{n},1,1,1\np{n},s{},1,1,2\n", n + 1)).collect();
        all.read(format!("program,series,x,run,value\n{rows}").as_bytes()).unwrap();
        let about = r#"{"title":"","source":"","paper":"","x":{"name":"x"},"y":{"name":"y","of":{"3":"s"}},"claims":[]}"#;
        let about: About = serde_json::from_str(about).unwrap();
        let found = colours(&about, &all);
        assert!(found.windows(2).all(|pair| pair[0] != pair[1]), "{found:?}");
        assert_eq!((about.y.of("p3"), about.y.of("p4")), ("s", "y"));
    }
}
