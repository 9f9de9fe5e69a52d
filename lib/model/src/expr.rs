//! Expressions in integers: values that a user knows as functions of the rank.
//!
//! The language is C's, on 64-bit integers: numbers, the names `me`, `size` and `n`, parentheses, `- !`, `* / %`, `+ -`,
//! `<< >>`, `< <= > >=`, `== !=`, `&`, `^`, `|`, `&&`, `||` and `? :`, with C's precedence. Division truncates. What overflows,
//! divides by zero or shifts by less than 0 or more than 63 has no value, and nor has what is made of it, except that the branch
//! of `? :` that is not taken does not matter.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};

/// Longest text of an expression, in bytes.
pub const LONGEST: usize = 2000;
/// Deepest nesting.
const DEEPEST: usize = 64;

/// Who makes a call: its own rank in the call's communicator, and the number of ranks that peers are among.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Own {
    /// Own rank.
    pub me: i64,
    /// Number of ranks.
    pub size: i64,
}

/// An expression. Copies are the same one; equal texts are equal.
///
/// *Memory:* each different expression that a process meets is kept until its end.
#[derive(Clone, Copy)]
pub struct Expr(&'static Inner);

#[derive(Debug)]
struct Inner {
    /// Without blanks, constants written out.
    text: String,
    /// In postfix order.
    code: Vec<Op>,
    counts: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Op {
    Number(i64),
    Me,
    Size,
    N,
    Negate,
    Not,
    Binary(Binary),
    Choose,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Binary {
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equal,
    Unequal,
    Below,
    AtMost,
    Above,
    AtLeast,
    Left,
    Right,
    Plus,
    Minus,
    Times,
    Divide,
    Rest,
}

/// Binary operators by precedence, loosest first; longer texts before those that they begin with.
const LEVELS: [&[(&str, Binary)]; 10] = [
    &[("||", Binary::Or)],
    &[("&&", Binary::And)],
    &[("|", Binary::BitOr)],
    &[("^", Binary::BitXor)],
    &[("&", Binary::BitAnd)],
    &[("==", Binary::Equal), ("!=", Binary::Unequal)],
    &[("<=", Binary::AtMost), (">=", Binary::AtLeast), ("<", Binary::Below), (">", Binary::Above)],
    &[("<<", Binary::Left), (">>", Binary::Right)],
    &[("+", Binary::Plus), ("-", Binary::Minus)],
    &[("*", Binary::Times), ("/", Binary::Divide), ("%", Binary::Rest)],
];

/// Why a text is no expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Something else is expected.
    #[error("expected {expected} at \"{rest}\"")]
    Expected {
        /// What.
        expected: &'static str,
        /// Where: the text from there on.
        rest: String,
    },
    /// A name that is not known.
    #[error("unknown name \"{0}\"")]
    Name(String),
    /// The text is too long or nested too deeply.
    #[error("the expression is too long")]
    Long,
}

impl Expr {
    /// Reads an expression with named constants.
    ///
    /// # Errors
    ///
    /// If the text is none.
    pub fn parse(text: &str, constants: &HashMap<String, i64>) -> Result<Self, Error> {
        if text.len() > LONGEST {
            return Err(Error::Long);
        }
        let mut parser = Parser { rest: text, constants, code: Vec::new(), out: String::new(), depth: 0 };
        parser.choice()?;
        parser.blanks();
        if !parser.rest.is_empty() {
            return Err(parser.expected("an operator"));
        }
        if parser.out.len() > LONGEST {
            return Err(Error::Long);
        }
        Ok(kept(Inner { counts: parser.code.contains(&Op::N), text: parser.out, code: parser.code }))
    }

    /// `condition ? self : other`.
    ///
    /// # Errors
    ///
    /// If that is too long.
    pub fn only_if(self, condition: Self, other: Self) -> Result<Self, Error> {
        Self::parse(&format!("({condition})?({self}):({other})"), &HashMap::new())
    }

    /// The sum with another.
    ///
    /// # Errors
    ///
    /// If that is too long.
    pub fn plus(self, other: Self) -> Result<Self, Error> {
        Self::parse(&format!("({self})+({other})"), &HashMap::new())
    }

    /// Its value, if that is the same for all ranks.
    #[must_use]
    pub fn constant(self) -> Option<i64> {
        let varies = self.0.code.iter().any(|op| matches!(op, Op::Me | Op::Size | Op::N));
        if varies { None } else { self.value(Own::default(), 0) }
    }

    /// Whether its value depends on `n`.
    #[must_use]
    pub fn counts(self) -> bool {
        self.0.counts
    }

    /// Its value for a rank and the n-th value of a stream (from 0); `None` if it has none.
    #[must_use]
    pub fn value(self, own: Own, n: u64) -> Option<i64> {
        let mut stack: Vec<Option<i64>> = Vec::with_capacity(8);
        for op in &self.0.code {
            let top = match *op {
                Op::Number(v) => Some(v),
                Op::Me => Some(own.me),
                Op::Size => Some(own.size),
                Op::N => i64::try_from(n).ok(),
                Op::Negate => stack.pop()?.and_then(i64::checked_neg),
                Op::Not => stack.pop()?.map(|v| i64::from(v == 0)),
                Op::Binary(op) => {
                    let (b, a) = (stack.pop()?, stack.pop()?);
                    a.zip(b).and_then(|(a, b)| binary(op, a, b))
                }
                Op::Choose => {
                    let (no, yes, condition) = (stack.pop()?, stack.pop()?, stack.pop()?);
                    condition.and_then(|c| if c == 0 { no } else { yes })
                }
            };
            stack.push(top);
        }
        stack.pop().flatten()
    }
}

fn binary(op: Binary, a: i64, b: i64) -> Option<i64> {
    let shift = || u32::try_from(b).ok().filter(|b| *b < 64);
    Some(match op {
        Binary::Or => i64::from(a != 0 || b != 0),
        Binary::And => i64::from(a != 0 && b != 0),
        Binary::BitOr => a | b,
        Binary::BitXor => a ^ b,
        Binary::BitAnd => a & b,
        Binary::Equal => i64::from(a == b),
        Binary::Unequal => i64::from(a != b),
        Binary::Below => i64::from(a < b),
        Binary::AtMost => i64::from(a <= b),
        Binary::Above => i64::from(a > b),
        Binary::AtLeast => i64::from(a >= b),
        Binary::Left => a.checked_mul(1i64.checked_shl(shift()?).filter(|p| *p > 0)?)?,
        Binary::Right => a >> shift()?,
        Binary::Plus => a.checked_add(b)?,
        Binary::Minus => a.checked_sub(b)?,
        Binary::Times => a.checked_mul(b)?,
        Binary::Divide => a.checked_div(b)?,
        Binary::Rest => a.checked_rem(b)?,
    })
}

/// The one copy of an expression.
fn kept(inner: Inner) -> Expr {
    static ALL: Mutex<Option<HashSet<Expr>>> = Mutex::new(None);
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let all = all.get_or_insert_default();
    if let Some(known) = all.iter().find(|e| e.0.text == inner.text) {
        return *known;
    }
    let new = Expr(Box::leak(Box::new(inner)));
    all.insert(new);
    new
}

impl PartialEq for Expr {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}
impl Eq for Expr {}
impl Hash for Expr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.text.hash(state);
    }
}
impl PartialOrd for Expr {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Expr {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.text.cmp(&other.0.text)
    }
}
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}
impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expr({self})")
    }
}

struct Parser<'a> {
    rest: &'a str,
    constants: &'a HashMap<String, i64>,
    code: Vec<Op>,
    out: String,
    depth: usize,
}

impl Parser<'_> {
    fn blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn expected(&self, expected: &'static str) -> Error {
        Error::Expected { expected, rest: self.rest.chars().take(20).collect() }
    }

    fn take(&mut self, token: &str) -> bool {
        self.blanks();
        let found = self.rest.strip_prefix(token);
        if let Some(rest) = found {
            self.rest = rest;
            self.out.push_str(token);
        }
        found.is_some()
    }

    fn choice(&mut self) -> Result<(), Error> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Error::Long);
        }
        self.level(0)?;
        if self.take("?") {
            self.choice()?;
            if !self.take(":") {
                return Err(self.expected(":"));
            }
            self.choice()?;
            self.code.push(Op::Choose);
        }
        self.depth -= 1;
        Ok(())
    }

    fn level(&mut self, level: usize) -> Result<(), Error> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        self.level(level + 1)?;
        while let Some((token, op)) = self.operator(operators) {
            self.rest = &self.rest[token.len()..];
            self.out.push_str(token);
            self.level(level + 1)?;
            self.code.push(Op::Binary(op));
        }
        Ok(())
    }

    /// The operator of a level that comes next, if it is no longer operator of another.
    fn operator(&mut self, operators: &[(&'static str, Binary)]) -> Option<(&'static str, Binary)> {
        self.blanks();
        let next = LEVELS.iter().copied().flatten().filter(|(t, _)| self.rest.starts_with(t));
        let longest = next.max_by_key(|(t, _)| t.len())?;
        operators.iter().copied().find(|o| o.0 == longest.0)
    }

    fn unary(&mut self) -> Result<(), Error> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Error::Long);
        }
        if self.take("-") {
            self.unary()?;
            self.code.push(Op::Negate);
        } else if self.take("!") {
            self.unary()?;
            self.code.push(Op::Not);
        } else if self.take("(") {
            self.choice()?;
            if !self.take(")") {
                return Err(self.expected("an operator or )"));
            }
        } else {
            self.operand()?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn operand(&mut self) -> Result<(), Error> {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let op = match word {
            "" => return Err(self.expected("a number, a name or (")),
            "me" => Op::Me,
            "size" => Op::Size,
            "n" => Op::N,
            _ if word.starts_with(|c: char| c.is_ascii_digit()) => {
                Op::Number(word.parse().map_err(|_| self.expected("a number"))?)
            }
            _ => match self.constants.get(word) {
                Some(v) => Op::Number(*v),
                None => return Err(Error::Name(word.to_owned())),
            },
        };
        match op {
            // As a number that is read back: a negative one in parentheses.
            Op::Number(v) if v < 0 => {
                let magnitude = v.checked_neg().ok_or(Error::Long)?;
                self.out.push_str(&format!("(-{magnitude})"));
                self.code.extend([Op::Number(magnitude), Op::Negate]);
            }
            Op::Number(v) => {
                self.out.push_str(&v.to_string());
                self.code.push(op);
            }
            _ => {
                self.out.push_str(word);
                self.code.push(op);
            }
        }
        self.rest = rest;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(text: &str, me: i64, size: i64, n: u64) -> Option<i64> {
        let constants = HashMap::from([("nr".to_owned(), 4), ("minus".to_owned(), -3)]);
        Expr::parse(text, &constants).ok()?.value(Own { me, size }, n)
    }

    #[test]
    fn precedence_is_that_of_c() {
        for (text, expected) in [
            ("1 + 2 * 3", 7),
            ("(1+2)*3", 9),
            ("7 - 2 - 1", 4),
            ("-7 / 2", -3),
            ("-7 % 3", -1),
            ("1 << 2 + 1", 8),
            ("6 & 3 == 3", 0),
            ("5 ^ 1 | 8", 12),
            ("1 < 2 && 3 >= 4 || 2 != 2", 0),
            ("!0 + !5", 1),
            ("me ? size : n", 16),
            ("0 ? 1 : 0 ? 2 : 3", 3),
            ("0 ? 1 / 0 : 5", 5),
            ("minus + 3", 0),
            ("me--1", 4),
        ] {
            assert_eq!(value(text, 3, 16, 9), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_has_no_value_has_none() {
        for text in ["1 / 0", "me % (me - 3)", "1 << 64", "9223372036854775807 + 1", "1 / 0 ? 1 : 2"] {
            assert_eq!(value(text, 3, 16, 0), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_expression_is_said() {
        let error = |text: &str| Expr::parse(text, &HashMap::new()).map_err(|e| e.to_string());
        assert_eq!(error("me %"), Err("expected a number, a name or ( at \"\"".into()));
        assert_eq!(error("me me"), Err("expected an operator at \"me\"".into()));
        assert_eq!(error("nr * 2"), Err("unknown name \"nr\"".into()));
        assert_eq!(error("(me"), Err("expected an operator or ) at \"\"".into()));
        assert_eq!(error(&"(".repeat(500)), Err("the expression is too long".into()));
        assert_eq!(error(&"-".repeat(500)), Err("the expression is too long".into()));
        assert_eq!(
            error("99999999999999999999"),
            Err("expected a number at \"99999999999999999999\"".into())
        );
    }

    #[test]
    fn cg_is_an_involution() {
        // Wu, Mueller 2012: the transposed partner of CG on a square, and on twice as many columns as rows.
        for (size, nr, text) in [
            (16i64, 4i64, "(me % nr) * nr + me / nr"),
            (32, 4, "2 * ((me / 2 % nr) * nr + me / 2 / nr) + me % 2"),
        ] {
            let e = Expr::parse(text, &HashMap::from([("nr".to_owned(), nr)])).unwrap();
            let at = |me| e.value(Own { me, size }, 0).unwrap();
            assert!((0..size).all(|me| at(at(me)) == me), "{e}");
        }
    }

    proptest! {
        #[test]
        fn anything_can_be_read(text in "[me size n0-9+*/%()<>=!&|^?:-]{0,40}", me: i64, size: i64, n: u64) {
            if let Ok(e) = Expr::parse(&text, &HashMap::new()) {
                let again = Expr::parse(&e.to_string(), &HashMap::new());
                prop_assert_eq!(again, Ok(e));
                let _ = e.value(Own { me, size }, n);
            }
        }
    }
}
