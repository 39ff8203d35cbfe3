// Elements are made here, and nowhere else. Text becomes text: nothing is ever read as HTML.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children.flat(3).filter((c) => c || c === 0));
  return element;
}

export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// proseOf makes `words in backquotes` code.
export function proseOf(text) {
  return text.split('`').map((part, i) => (i % 2 ? h('code', {}, part) : part));
}

// A Part is an element that is made again when what it shows has changed. It keeps the focus, and what was opened.
export class Part {
  #last; #make;
  constructor(element, make) { this.element = element; this.#make = make; }
  show(data, ...context) {
    const now = JSON.stringify([data, context]);
    if (now === this.#last) return;
    this.#last = now;
    const focused = this.element.contains(document.activeElement) && document.activeElement.dataset.key;
    const opened = [...this.element.querySelectorAll('details[open]')].map((d) => d.dataset.key);
    this.element.replaceChildren(...[this.#make(data, ...context)].flat(3).filter(Boolean));
    for (const d of this.element.querySelectorAll('details')) d.open ||= opened.includes(d.dataset.key);
    if (focused) this.element.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }
}
