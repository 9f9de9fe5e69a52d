//! Student's distribution, by which differences are judged.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::side::Variance;

/// Probability that is beyond the interval on either side.
const OUTSIDE: f64 = 0.005;

/// So many degrees of freedom are as good as any more.
const NORMAL: f64 = 1e3;

/// The distribution of so many degrees of freedom.
pub(super) fn student(freedom: f64) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, freedom.min(NORMAL)).ok()
}

/// The outcome of one test: as [`super::Judged`] has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tested {
    pub(super) probability: f64,
    pub(super) uncertainty: f64,
}

/// What chance makes of a change, by its variances.
pub(super) fn tested(change: f64, variances: &[Variance]) -> Option<Tested> {
    let sum: f64 = variances.iter().map(|v| v.of_mean).sum();
    let freedom = sum * sum / variances.iter().map(|v| v.of_mean * v.of_mean / v.freedom).sum::<f64>();
    let student = student(freedom).filter(|_| sum > 0.0)?;
    let probability = (2.0 * student.sf(change / sum.sqrt())).min(1.0);
    Some(Tested { probability, uncertainty: quantile(&student) * sum.sqrt() })
}

/// What [`OUTSIDE`] is beyond, by halving: the library's own inverse does not end for some distributions.
pub(super) fn quantile(student: &StudentsT) -> f64 {
    let halve = |(low, high): (f64, f64), _| {
        let middle = f64::midpoint(low, high);
        if student.sf(middle) > OUTSIDE { (middle, high) } else { (low, middle) }
    };
    // With one degree of freedom it is 63.7, and there is none with fewer.
    (0..50).fold((0.0, 64.0), halve).1
}
