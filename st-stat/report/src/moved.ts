// What is seen of something that has rows and a width, and how one moves in it.

import { el } from "./dom";

/** From where to where, and which rows. */
export interface Part {
  from: number;
  to: number;
  first: number;
  last: number;
}

export abstract class Moved<P extends Part> {
  readonly canvas = el("canvas", { tabindex: "0", role: "img" });
  protected abstract seen: P;
  private waiting = false;

  /** Shows what is asked for, as far as it is there. */
  abstract show(seen: P): void;

  protected abstract paint(): void;

  get view(): P {
    return this.seen;
  }

  zoom(by: number, around = 0.5): void {
    const { from, to } = this.seen;
    const at = from + (to - from) * around;
    this.show({ ...this.seen, from: at - (at - from) * by, to: at + (to - at) * by });
  }

  /** Shows so many times as many rows. */
  fewer(by: number, around = 0.5): void {
    const { first, last } = this.seen;
    const at = first + (last - first) * around;
    this.show({ ...this.seen, first: at - (at - first) * by, last: at + (last - at) * by });
  }

  pan(part: number, rows = 0): void {
    const { from, to, first, last } = this.seen;
    const [x, y] = [(to - from) * part, (last - first) * rows];
    this.show({ ...this.seen, from: from + x, to: to + x, first: first + y, last: last + y });
  }

  /** What keys do, by their names. */
  protected get keys(): Record<string, () => void> {
    return {
      ArrowLeft: () => this.pan(-0.1),
      ArrowRight: () => this.pan(0.1),
      ArrowUp: () => this.pan(0, -0.1),
      ArrowDown: () => this.pan(0, 0.1),
      "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      ">": () => this.fewer(0.5),
      "<": () => this.fewer(2),
    };
  }

  protected key(e: KeyboardEvent): void {
    const does = this.keys[e.key];
    if (e.ctrlKey || e.metaKey || e.altKey || !does) return;
    e.preventDefault();
    does();
  }

  /** The wheel is turned at these parts of the width and the height of what is seen. */
  protected wheel(e: WheelEvent, x: number, y: number): void {
    e.preventDefault();
    const by = Math.exp(Math.max(-200, Math.min(200, e.deltaY)) / 400);
    if (e.shiftKey) this.pan((e.deltaY || e.deltaX) / 800);
    else if (e.ctrlKey || e.altKey) this.fewer(by, y);
    else if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.pan(e.deltaX / 800);
    else this.zoom(by, Math.max(0, x));
  }

  /** Draws in the next frame. */
  draw(): void {
    // A printer does not wait for the next frame.
    if (document.documentElement.classList.contains("printing")) return this.paint();
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      if (this.canvas.isConnected && this.canvas.offsetParent !== null) this.paint();
    });
  }
}
