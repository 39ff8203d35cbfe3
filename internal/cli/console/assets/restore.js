// What can be restored, as a bar, with the backups as marks. A moment is picked on it, and the ways back are shown.

import { ask } from './api.js';
import { h, Part } from './dom.js';
import { localInput, moment, short, span, zoned } from './format.js';
import { copyable, troubleBox } from './parts.js';
import { language, t } from './words.js';

const seconds = (at) => Math.floor(new Date(at).getTime() / 1000);
const nice = [1, 5, 15, 60, 300, 900, 3600, 10800, 43200, 86400];

// proofWords says how far a backup is proved.
export function proofWords(b) {
  const took = b.proof.recoverySeconds ? ` ${t('proof.in', { span: span(b.proof.recoverySeconds) })}` : '';
  return t(`proof.${b.proof.is}`) + took;
}

export class Restore {
  #db; #picked; #way = 'beside'; #table = ''; #into = ''; #asked = 0;
  constructor() {
    this.bar = h('div', { class: 'slider', role: 'slider', tabindex: 0, 'data-key': 'slider',
      'aria-label': t('restore.pick'), onkeydown: (e) => this.#key(e), onpointerdown: (e) => this.#point(e),
      onpointermove: (e) => e.buttons === 1 && this.#point(e) });
    this.track = new Part(h('div', { class: 'track' }), (d) => this.#track(d));
    this.hand = h('div', { class: 'hand', hidden: true });
    this.bar.append(this.track.element, this.hand);
    this.ends = h('div', { class: 'ends' });
    this.field = h('input', { type: 'datetime-local', step: 1, id: 'moment', 'aria-label': t('restore.moment'),
      onchange: () => this.field.value && this.#pick(seconds(this.field.value)) });
    this.hint = h('small', { class: 'faint' });
    this.ways = h('div', { id: 'ways' });
    this.none = h('p', { class: 'faint' }, t('restore.none'));
    const picker = h('div', { class: 'picker' }, h('label', {}, t('restore.moment'), this.field), this.hint);
    this.some = h('div', {}, this.bar, this.ends, picker, this.ways);
    this.element = h('div', { id: 'restore' }, this.none, this.some);
  }
  show(db, at) {
    this.#db = db;
    const { windows } = db.archive;
    this.none.hidden = windows.length > 0;
    this.some.hidden = windows.length === 0;
    if (!windows.length) return;
    this.from = Math.min(...windows.map((w) => seconds(w.from)));
    this.seen = Math.max(...windows.map((w) => seconds(w.to)), this.from + 1);
    this.to = db.archive.flows ? Math.max(this.seen, seconds(at)) : this.seen;
    this.step = nice.find((s) => s >= (this.to - this.from) / 400) ?? 86400;
    const marks = db.backups.filter((b) => b.phase === 'Completed' && b.endedAt);
    this.track.show({ windows, marks, from: this.from, to: this.to, seen: this.seen }, language);
    this.ends.replaceChildren(h('span', {}, moment(windows[0].from)),
      h('span', {}, t('restore.until', { at: moment(this.to * 1000) })));
    this.hint.textContent = t('restore.keys', { small: span(this.step), large: span(this.step * 12) });
    this.bar.setAttribute('aria-valuemin', this.from);
    this.bar.setAttribute('aria-valuemax', this.to);
    this.field.min = localInput(new Date(this.from * 1000));
    if (this.#picked) this.#place();
  }
  #percent(at) { return Math.min(100, Math.max(0, (at - this.from) / (this.to - this.from) * 100)); }
  #track({ windows, marks, to, seen }) {
    const ahead = h('div', { class: 'window ahead', title: t('restore.ahead', { at: moment(seen * 1000) }) });
    this.#put(ahead, seen, to);
    return [ahead, windows.map((w) => this.#window(w)), marks.map((b) => this.#mark(b))];
  }
  #put(element, from, to) {
    const left = this.#percent(from);
    element.style.left = `${left}%`;
    element.style.width = `max(3px, ${this.#percent(to) - left}%)`;
  }
  #window(w) {
    const values = { branch: w.branch, version: w.version, from: moment(w.from), to: moment(w.to) };
    const out = h('div', { class: `window ${w.version ? 'former' : ''} ${w.goesOn ? 'on' : ''}`,
      title: t(w.version ? 'restore.former' : 'restore.window', values) });
    this.#put(out, seconds(w.from), seconds(w.to));
    return out;
  }
  #mark(b) {
    const out = h('button', { type: 'button', tabindex: -1, class: `mark-backup ${b.proof.is}`, 'aria-label': b.name,
      title: `${b.name}\n${moment(b.endedAt)}\n${proofWords(b)}`,
      onclick: () => this.#pick(seconds(b.endedAt) + 1) });
    out.style.left = `${this.#percent(seconds(b.endedAt))}%`;
    return out;
  }
  #point(event) {
    if (event.target.closest('button')) return;
    const box = this.bar.getBoundingClientRect();
    this.#pick(this.from + (event.clientX - box.left) / box.width * (this.to - this.from));
  }
  #key(event) {
    const large = this.step * 12;
    const by = { ArrowLeft: -this.step, ArrowDown: -this.step, ArrowRight: this.step, ArrowUp: this.step,
      PageUp: large, PageDown: -large }[event.key];
    const at = this.#picked ?? this.to;
    if (event.key === 'Home') this.#pick(this.from);
    else if (event.key === 'End') this.#pick(this.to);
    else if (by) this.#pick(at + (event.shiftKey ? by * 12 : by));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
  #pick(at) {
    this.#picked = Math.round(Math.min(this.to, Math.max(this.from, at)));
    this.#place();
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.#load(), 150);
  }
  #place() {
    this.hand.hidden = false;
    const percent = this.#percent(this.#picked);
    this.hand.style.left = `${percent}%`;
    this.hand.style.setProperty('--back', `${-percent}%`);
    const date = new Date(this.#picked * 1000);
    this.hand.dataset.at = short(date);
    this.bar.setAttribute('aria-valuenow', this.#picked);
    this.bar.setAttribute('aria-valuetext', moment(date));
    if (document.activeElement !== this.field) this.field.value = localInput(date);
  }
  async #load() {
    const asked = ++this.#asked;
    const { namespace, name } = this.#db;
    try {
      const ways = await ask('restore', { namespace, name, to: zoned(new Date(this.#picked * 1000)),
        table: this.#table, into: this.#into });
      if (asked === this.#asked) this.#show(ways);
    } catch (e) {
      this.ways.replaceChildren(troubleBox(e));
    }
  }
  #show(ways) {
    const inside = this.#db.archive.windows.some((w) => seconds(w.from) <= this.#picked
      && this.#picked <= seconds(w.to));
    const key = (name) => h('button', { type: 'button', role: 'tab', 'aria-selected': String(name === this.#way),
      'data-key': `way-${name}`,
      onclick: () => {
        this.#way = name;
        this.#show(ways);
        this.ways.querySelector(`[data-key="way-${name}"]`).focus();
      } }, t(`restore.${name}`));
    const field = (name, value, like, set) => h('label', {}, t(`restore.${name}Name`),
      h('input', { value, placeholder: like, spellcheck: 'false', autocomplete: 'off',
      onchange: (e) => { set(e.target.value.trim()); this.#load(); } }));
    const way = ways[this.#way];
    const ahead = this.#picked > this.seen;
    const note = ahead ? t('restore.ahead', { at: moment(this.seen * 1000) }) : t('restore.outside');
    this.ways.replaceChildren(...[!inside && h('div', { class: `notice ${ahead ? '' : 'warn'}` }, note),
      h('div', { class: 'tabs', role: 'tablist' }, ['beside', 'inPlace', 'table'].map(key)),
      h('p', {}, t(`restore.${this.#way}Says`)),
      this.#way === 'beside' && field('into', this.#into, `${this.#db.name}-restored`, (v) => { this.#into = v; }),
      this.#way === 'table' && field('table', this.#table, 'public.orders', (v) => { this.#table = v; }),
      h('h4', {}, t('restore.command')), copyable(way.command, 'command'),
      way.problem && h('div', { class: 'notice warn' }, way.problem),
      way.manifest && h('details', {}, h('summary', {}, t('restore.manifest')),
        copyable(way.manifest, 'manifest', 'pre'))].filter(Boolean));
  }
}
