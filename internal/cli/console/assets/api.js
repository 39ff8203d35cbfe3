// What the page asks the program. All paths are below the token's.

// A browser gives up what it just connects for when an interface of the machine comes or goes (ERR_NETWORK_CHANGED of
// Chromium), also to the machine itself. What only reads is asked again, after these milliseconds.
const pauses = [100, 500, 2000];

async function reach(url) {
  for (const pause of pauses) {
    try {
      return await fetch(url);
    } catch {
      await new Promise((resolve) => { setTimeout(resolve, pause); });
    }
  }
  return fetch(url);
}

// ask is an answer of the program, or an error with a sentence. Whether a change was made that the program has not
// answered is not known.
export async function ask(path, query, body) {
  const url = `api/${path}${query ? `?${new URLSearchParams(query)}` : ''}`;
  let response;
  try {
    response = await (body ? fetch(url, { method: 'POST', body: JSON.stringify(body) }) : reach(url));
  } catch {
    throw { kind: body ? 'unknown' : 'ended' };
  }
  const answer = await response.json().catch(() => ({ kind: 'failed', message: response.statusText }));
  if (!response.ok) throw answer;
  return answer;
}

// A Stream has the views of a page, again and again, while somebody looks at it.
export class Stream {
  #source; #query; #tell;
  constructor(tell) {
    this.#tell = tell;
    document.addEventListener('visibilitychange', () => this.#open());
  }
  of(query) {
    this.#query = query;
    this.#open();
  }
  #open() {
    this.#source?.close();
    this.#source = undefined;
    if (document.hidden || !this.#query) return;
    const source = new EventSource(`api/stream?${new URLSearchParams(this.#query)}`);
    this.#source = source;
    source.onmessage = (event) => source === this.#source && this.#tell(JSON.parse(event.data));
    // The browser tries again by itself, unless the program has refused.
    source.onerror = () => {
      if (source !== this.#source) return;
      this.#tell(undefined);
      if (source.readyState === EventSource.CLOSED) setTimeout(() => source === this.#source && this.#open(), 2000);
    };
  }
}
