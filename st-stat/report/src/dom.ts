// Elements, made with as few words as possible.

type Child = Node | string | null | undefined | false;

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((c): c is Node | string => c !== null && c !== undefined && c !== false));
  return element;
}

export function button(text: string, press: () => void, attributes: Record<string, string> = {}): HTMLButtonElement {
  const made = el("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", press);
  return made;
}

/** Copies a text, and says so on the button for a moment. */
export async function copy(text: string, on: HTMLElement): Promise<void> {
  const before = on.textContent;
  try {
    await navigator.clipboard.writeText(text);
    on.textContent = "copied";
  } catch {
    const area = el("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    on.textContent = document.execCommand("copy") ? "copied" : "cannot copy";
    area.remove();
  }
  setTimeout(() => (on.textContent = before), 1200);
}

/** A canvas as wide as its container, sharp on every screen. Returns its size in CSS pixels, and the scale. */
export function fit(canvas: HTMLCanvasElement, height: number): { width: number; height: number; scale: number } {
  const width = Math.max(200, Math.floor(canvas.parentElement?.clientWidth ?? 600));
  const scale = Math.min(3, window.devicePixelRatio || 1);
  const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  return { width, height, scale };
}

/** The same, cleared, with units of CSS pixels. */
export function cleared(canvas: HTMLCanvasElement, height: number): { context: CanvasRenderingContext2D; width: number; height: number } | null {
  const { width, height: tall, scale } = fit(canvas, height);
  const context = canvas.getContext("2d");
  if (!context) return null;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.fillStyle = colour("ground");
  context.fillRect(0, 0, width, tall);
  return { context, width, height: tall };
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const colours = new Map<string, string>();
/** What the colours that are known depend on. */
let scheme = "";

/** A colour of the style, as it is now. Asked for many times in a frame, and looked up once for each scheme. */
export function colour(name: string): string {
  const root = document.documentElement;
  const now = `${root.dataset.theme ?? dark.matches} ${root.className}`;
  if (now !== scheme) {
    colours.clear();
    scheme = now;
  }
  let known = colours.get(name);
  if (known === undefined) {
    known = getComputedStyle(root).getPropertyValue(`--${name}`).trim();
    colours.set(name, known);
  }
  return known;
}

/** A colour `#rrggbb` as a pixel. */
export function pixel(hex: string): number {
  const n = parseInt(hex.slice(1), 16);
  return (0xff000000 | ((n & 0xff) << 16) | (n & 0xff00) | (n >> 16)) >>> 0;
}

/** Between two pixels: 0 is the first. */
export function mix(a: number, b: number, part: number): number {
  const of = (shift: number): number => {
    const [x, y] = [(a >>> shift) & 255, (b >>> shift) & 255];
    return (Math.round(x + (y - x) * part) & 255) << shift;
  };
  return (0xff000000 | of(0) | of(8) | of(16)) >>> 0;
}

/** A pixel as a colour of a canvas. */
export const css = (of: number): string => `rgb(${of & 255}, ${(of >>> 8) & 255}, ${(of >>> 16) & 255})`;
