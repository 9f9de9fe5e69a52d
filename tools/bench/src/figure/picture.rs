//! A picture: a panel for each program, a line for each series.

use anyhow::{Result, anyhow};
use plotters::prelude::*;
use st_model::num::saturate;

use super::about::About;
use super::matrix;
use super::measured::Measured;
use super::scale::{Area, Scale};
use crate::stats::Estimate;

/// Size of a panel, in pixels, and how many stand side by side.
const PANEL: (u32, u32) = (560, 360);
const ACROSS: usize = 2;
/// Room for the title.
const HEAD: u32 = 40;

/// Colours that are told apart by who is colour-blind, too (Okabe and Ito 2008).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];

/// The picture as SVG. The same values give the same bytes.
pub(super) fn svg(about: &About, measured: &Measured) -> Result<String> {
    let mut text = String::new();
    // Of a program of which things are only told there is no picture.
    let has = |program: &usize| about.drawn(measured).any(|s| !measured.points(*program, s).is_empty());
    let shown: Vec<usize> = (0..measured.programs.len()).filter(has).collect();
    let across = shown.len().clamp(1, ACROSS);
    let down = shown.len().div_ceil(across).max(1);
    let size = (PANEL.0 * saturate::<u32>(across), HEAD + PANEL.1 * saturate::<u32>(down));
    {
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        let failed = |e: &dyn std::fmt::Display| anyhow!("drawing: {e}");
        root.fill(&WHITE).map_err(|e| failed(&e))?;
        let body = root.titled(&about.title, ("sans-serif", 22)).map_err(|e| failed(&e))?;
        let draw = if about.matrix { matrix::panel } else { panel };
        for (program, area) in shown.iter().zip(&body.split_evenly((down, across))) {
            draw(about, measured, *program, area)?;
        }
        root.present().map_err(|e| failed(&e))?;
    }
    Ok(text)
}

fn panel(about: &About, measured: &Measured, program: usize, area: &Area<'_>) -> Result<()> {
    let failed = |e: &dyn std::fmt::Display| anyhow!("drawing: {e}");
    let axis = measured.axis();
    let all: Vec<(usize, Vec<(usize, Estimate)>)> = about
        .drawn(measured)
        .map(|s| (s, measured.points(program, s)))
        .filter(|(_, p)| !p.is_empty())
        .collect();
    let points = || all.iter().flat_map(|(_, points)| points);
    let numbers = measured.places.iter().all(|p| p.parse::<f64>().is_ok());
    let names = if numbers { Vec::new() } else { measured.places.clone() };
    let across = Scale::around(points().map(|(place, _)| axis[*place]), about.x.log && numbers, names);
    let upward = Scale::around(points().flat_map(|(_, e)| [e.low, e.high]), about.y.log, Vec::new());
    let mut chart = ChartBuilder::on(area)
        .caption(&measured.programs[program], ("sans-serif", 16))
        .margin(8)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(across, upward)
        .map_err(|e| failed(&e))?;
    chart
        .configure_mesh()
        .x_desc(&about.x.name)
        .y_desc(&about.y.name)
        .light_line_style(TRANSPARENT)
        .draw()
        .map_err(|e| failed(&e))?;
    for (series, points) in &all {
        let colour = COLOURS[series % COLOURS.len()];
        let line: Vec<(f64, f64)> = points.iter().map(|(place, e)| (axis[*place], e.median)).collect();
        chart
            .draw_series(LineSeries::new(line.clone(), colour.stroke_width(2)))
            .map_err(|e| failed(&e))?
            .label(&measured.series[*series])
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        chart
            .draw_series(line.into_iter().map(|at| Circle::new(at, 3, colour.filled())))
            .map_err(|e| failed(&e))?;
        let spread = points.iter().filter(|(_, e)| e.low < e.high);
        let bars = spread.map(|(place, e)| {
            PathElement::new([(axis[*place], e.low), (axis[*place], e.high)], colour.stroke_width(1))
        });
        chart.draw_series(bars).map_err(|e| failed(&e))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()
        .map_err(|e| failed(&e))?;
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
}
