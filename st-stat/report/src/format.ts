// Numbers for people, as st-stat prints them (st-stat/src/table.rs): three digits and a unit.

type Unit = [string, number];

const TIMES: Unit[] = [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]];
const BYTES: Unit[] = [["B", 1], ["kB", 1e3], ["MB", 1e6], ["GB", 1e9], ["TB", 1e12]];

/** How many of a unit so many are, rounded, halves up. */
const rounded = (n: number, perOne: number, one: number): number =>
  Math.floor(n / one) * perOne + Math.floor(((n % one) * perOne * 2 + one) / (2 * one));

function scaled(n: number, units: Unit[]): string {
  if (n < 1000) return `${n} ${units[0][0]}`;
  for (const [unit, one] of units.slice(1)) {
    for (const decimals of [2, 1, 0]) {
      const digits = rounded(n, 10 ** decimals, one);
      if (digits < 1000) return `${(digits / 10 ** decimals).toFixed(decimals)} ${unit}`;
    }
  }
  const [unit, one] = units[units.length - 1];
  return `${count(rounded(n, 1, one))} ${unit}`;
}

export const duration = (ns: number): string => (ns < 0 ? `−${scaled(-ns, TIMES)}` : scaled(ns, TIMES));

export const bytes = (n: number): string => scaled(n, BYTES);

export const count = (n: number): string => String(n).replace(/\B(?=(\d{3})+(?!\d))/g, ",");

export const percent = (part: number, whole: number): string =>
  `${(whole === 0 ? 0 : (part / whole) * 100).toFixed(1)} %`;

/** A time of the run, to as many digits as a difference needs. */
export function moment(ns: number, step: number): string {
  const digits = Math.min(9, Math.max(0, Math.ceil(9 - Math.log10(Math.max(step, 1)))));
  return `${(ns / 1e9).toFixed(digits)} s`;
}

/** The unit that a column's name ends with. */
export function unit(key: string): string {
  if (key.endsWith("_ns")) return "ns";
  if (key.endsWith("_bytes")) return "B";
  if (key.endsWith("_percent")) return "%";
  return "";
}

/** Columns of changes, whose numbers have a sign. */
const SIGNED = new Set(["change_percent", "run_percent"]);

/** A value of a column for people. */
export function shown(key: string, value: unknown): string {
  if (value === null || value === undefined) return "-";
  if (typeof value !== "number") return String(value);
  switch (unit(key)) {
    case "ns":
      return duration(value);
    case "B":
      return bytes(value);
    case "%":
      return `${SIGNED.has(key) && value > 0 ? "+" : ""}${value.toFixed(1).replace("-", "−")} %`;
    default:
      return Number.isInteger(value) ? count(value) : value < 0.001 && value > 0 ? value.toExponential(0) : value.toFixed(3);
  }
}

/** The same with all digits. */
export function exact(key: string, value: unknown): string {
  return typeof value === "number" ? `${value} ${unit(key)}`.trim() : String(value ?? "");
}
