//! Who sends how much to whom.

use anyhow::Result;
use st_model::num::{Exact as _, float};

use super::cells::nothing;
use crate::figure::{Anchor, EMPTY, Figure, HEAT, SMALL, Shaded, TEXT};
use crate::input::Lacking;
use crate::report::pairs;
use crate::report::room::Room;
use crate::report::told::Told;
use crate::table::{bytes, grouped};

/// What stands on the left, above and below; the square has at most so much on a side.
const LEFT: f64 = 30.0;
const TOP: f64 = 18.0;
const MOST: f64 = 320.0;

pub(super) fn draw(figure: &mut Figure, told: &Told) -> Result<()> {
    let Some(of) = &told.matrix else {
        return Err(Lacking(told.lacks.join("; ")).into());
    };
    let of = pairs::matrix(of, Room::default());
    let (Some(least), Some(most)) = (of.bytes.iter().min(), of.bytes.iter().max()) else {
        nothing(figure, "no messages");
        return Ok(());
    };
    let groups = of.ranks.div_ceil(of.group.max(1)).max(1);
    let side = (figure.width - LEFT).min(MOST);
    let cell = side / float(groups.to_u64().into());
    let place = |n: usize| cell * float(n.to_u64().into());
    figure.boxes(EMPTY, vec![[LEFT, TOP, side, side]]);
    // Sizes of messages differ by orders of magnitude.
    let log = |n: u64| float(u128::from(n) + 1).ln();
    let span = (log(*most) - log(*least)).max(f64::MIN_POSITIVE);
    let mut shaded = Shaded::default();
    for ((from, to), n) in of.from.iter().zip(&of.to).zip(&of.bytes) {
        // All is as dark as the most where all is alike.
        let part = if most == least { 1.0 } else { (log(*n) - log(*least)) / span };
        shaded.push(part, [LEFT + place(*to), TOP + place(*from), cell, cell]);
    }
    shaded.draw(figure, HEAT);
    let every = (0..usize::BITS).map(|n| 1 << n).find(|n| place(*n) > 14.0).unwrap_or(1);
    for group in (0..groups).step_by(every) {
        let rank = grouped((group * of.group).to_u64());
        figure.text([LEFT - 3.0, TOP + place(group) + cell.min(8.0) / 2.0 + 2.5], TEXT, Anchor::End, &rank);
        figure.text([LEFT + place(group) + cell / 2.0, TOP - 3.0], TEXT, Anchor::Middle, &rank);
    }
    figure.text([0.0, 6.0], SMALL, Anchor::Start, "from rank (down) to rank (across)");
    let y = TOP + side + 9.0;
    if most == least {
        figure.legend([LEFT, y], &[(&bytes(*most), HEAT[1])]);
    } else {
        figure.scale([LEFT, y], side, &bytes(*least), &bytes(*most), HEAT);
    }
    let each = if of.group > 1 {
        format!("between groups of {} ranks", grouped(of.group.to_u64()))
    } else {
        String::new()
    };
    figure.text([figure.width, y], SMALL, Anchor::End, &each);
    figure.reach(y + 3.0);
    Ok(())
}
