// What the page asks the program. All paths are below the token's.

// ask is an answer of the program, or an error with a sentence.
export async function ask(path, query, body) {
  const url = `api/${path}${query ? `?${new URLSearchParams(query)}` : ''}`;
  let response;
  try {
    response = await fetch(url, body && { method: 'POST', body: JSON.stringify(body) });
  } catch {
    throw { kind: 'ended' };
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
