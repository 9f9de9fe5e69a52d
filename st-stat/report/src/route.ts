// The address of what is seen, in the part of the URL behind the #: `#timeline&from=0&to=1000`.

export interface Route {
  view: string;
  of: Record<string, string>;
}

export function read(): Route {
  const [view, ...rest] = location.hash.slice(1).split("&");
  const of: Record<string, string> = {};
  for (const pair of rest) {
    const at = pair.indexOf("=");
    if (at > 0) {
      try {
        of[pair.slice(0, at)] = decodeURIComponent(pair.slice(at + 1));
      } catch {
        // What is no text of an address is left out.
      }
    }
  }
  return { view, of };
}

export function text(route: Route): string {
  const parts = Object.entries(route.of).map(([key, value]) => `${key}=${encodeURIComponent(value)}`);
  return `#${[route.view, ...parts].join("&")}`;
}

let writing: number | undefined;

/** Notes what is seen now, without a step in the browser's history. */
export function note(route: Route): void {
  window.clearTimeout(writing);
  writing = window.setTimeout(() => history.replaceState(null, "", text(route)), 150);
}
