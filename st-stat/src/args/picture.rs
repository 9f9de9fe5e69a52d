//! The command line of pictures for a paper.

use std::path::PathBuf;

use clap::{ArgGroup, Args as ClapArgs, ValueEnum};

/// How wide a paper's column is, mm.
pub(crate) const PAPER: f64 = 85.0;

/// Dots of a PNG to the inch, unless said otherwise.
pub(crate) const DPI: u16 = 300;

/// What is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum PictureOf {
    /// What ranks do when: computation, MPI, kinds of waits
    Timeline,
    /// Where the critical path is when
    Path,
    /// Call sites by their time in MPI
    Profile,
    /// Ranks on their grid: computation, MPI and waiting
    Ranks,
    /// Bytes from rank to rank
    Matrix,
    /// How long the calls of a call site take, with the ranks at the ends
    Spread,
    /// Efficiencies, each the product of those below it
    Efficiency,
    /// Waits by kind
    Waits,
}

impl PictureOf {
    /// As it is given.
    #[must_use]
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// A picture for a paper.
#[derive(ClapArgs, Clone, Debug)]
#[command(group(ArgGroup::new("drawn").args(["svg", "png"]).multiple(true)))]
pub struct PictureArgs {
    /// Draw a view of the run for a paper; the page is then written only if -o names a file
    #[arg(long, value_name = "VIEW", value_enum, requires = "drawn", help_heading = "Pictures")]
    pub view: Option<PictureOf>,
    /// Draw the view to FILE as SVG, texts as outlines
    #[arg(long, value_name = "FILE", requires = "view", help_heading = "Pictures")]
    pub svg: Option<PathBuf>,
    /// Draw the view to FILE as PNG
    #[arg(long, value_name = "FILE", requires = "view", help_heading = "Pictures")]
    pub png: Option<PathBuf>,
    /// How wide the picture is in mm: 85 is a paper's column, 180 two
    #[arg(long, value_name = "MM", default_value_t = PAPER, value_parser = millimetres, requires = "view", help_heading = "Pictures")]
    pub width: f64,
    /// Dots of a PNG to the inch
    #[arg(long, value_name = "N", default_value_t = DPI, value_parser = clap::value_parser!(u16).range(50..=2400), requires = "png", help_heading = "Pictures")]
    pub dpi: u16,
    /// With --view spread: the call site, by its number or as its place is printed, or an MPI function (default: that whose calls take most)
    #[arg(long, value_name = "SITE", requires = "view", help_heading = "Pictures")]
    pub site: Option<String>,
}

fn millimetres(text: &str) -> Result<f64, String> {
    let width = text.parse().ok().filter(|width: &f64| (80.0..=1000.0).contains(width));
    width.ok_or_else(|| "from 80 to 1000 mm".into())
}
