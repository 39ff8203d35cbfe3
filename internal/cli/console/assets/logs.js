// The last lines of the logs.

import { ask } from './api.js';
import { h } from './dom.js';
import { clock } from './format.js';
import { troubleBox } from './parts.js';
import { t } from './words.js';

export class Logs {
  #db; #lines = [];
  constructor(db) {
    this.#db = db;
    const option = (value, words) => h('option', { value }, words);
    this.instance = h('select', { 'aria-label': t('logs.instance'), onchange: () => this.load() },
      option('', t('logs.all')),
      db.picture.nodes.filter((n) => !n.reader).map((n) => option(n.name, n.name)));
    this.count = h('select', { 'aria-label': t('logs.lines'), onchange: () => this.load() },
      [100, 500, 2000].map((n) => option(n, t('logs.last', { n }))));
    this.source = h('select', { 'aria-label': t('logs.source'), onchange: () => this.#show() },
      option('', t('logs.both')), option('postgresql', 'PostgreSQL'), option('agent', t('logs.agent')));
    this.find = h('input', { type: 'search', placeholder: t('logs.find'), 'aria-label': t('logs.find'),
      oninput: () => this.#show() });
    this.out = h('div', { class: 'lines', tabindex: 0, role: 'log', 'aria-label': t('logs.title') });
    this.element = h('div', { id: 'logs' }, h('div', { class: 'bar' }, this.instance, this.count, this.source,
      this.find,
      h('button', { type: 'button', onclick: () => this.load() }, t('logs.load'))), this.out);
  }
  of(name) {
    this.instance.value = name;
    this.load();
    this.element.closest('section').scrollIntoView({ behavior: 'smooth', block: 'start' });
    this.out.focus({ preventScroll: true });
  }
  async load() {
    this.out.replaceChildren(h('p', { class: 'faint' }, t('loading')));
    try {
      const answer = await ask('logs', { namespace: this.#db.namespace, name: this.#db.name,
        instance: this.instance.value, lines: this.count.value });
      this.#lines = answer.lines;
      this.#show(answer.problem);
    } catch (e) {
      this.out.replaceChildren(troubleBox(e));
    }
  }
  #line(l) {
    const bad = /\b(ERROR|FATAL|PANIC)\b|"level":"(ERROR|WARN)"/.test(l.line);
    const number = l.instance.slice(this.#db.name.length) || l.instance;
    return h('p', { class: bad ? `${l.source} bad` : l.source },
      h('time', { datetime: l.time }, clock(l.time)), h('b', {}, number), h('span', {}, l.line));
  }
  #show(problem) {
    const find = this.find.value.toLowerCase();
    const source = this.source.value;
    const wanted = (l) => (!source || l.source === source) && l.line.toLowerCase().includes(find);
    const lines = this.#lines.filter(wanted).map((l) => this.#line(l));
    this.out.replaceChildren(...[problem && troubleBox({ kind: 'failed', message: problem }),
      ...lines, !lines.length && h('p', { class: 'faint' }, t('logs.none'))].filter(Boolean));
    this.out.scrollTop = this.out.scrollHeight;
  }
}
