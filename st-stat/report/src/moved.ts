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
