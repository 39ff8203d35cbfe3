// The fleet: a table of all SampleDBs. What needs somebody is first.

import { h, Part } from './dom.js';
import { when } from './format.js';
import { diskBar, levelMark, phasePill } from './parts.js';
import { language, t } from './words.js';

export const pathOf = (row) => `#/${encodeURIComponent(row.namespace)}/${encodeURIComponent(row.name)}`;

const warning = (words, title) => h('span', { class: 'badge warn', title }, words);
const faint = (words) => h('span', { class: 'faint' }, words);
const cell = (label, ...content) => h('td', { 'data-label': t(`fleet.${label}`) }, content);

function line(row) {
  const open = () => { location.hash = pathOf(row); };
  const c = row.concern;
  const name = h('a', { href: pathOf(row), 'data-key': `${row.namespace}/${row.name}` }, row.name);
  return h('tr', { class: row.level, onclick: (e) => e.target.closest('a') || getSelection().toString() || open() },
    h('td', { class: 'state' }, phasePill(row)),
    h('th', { scope: 'row' }, name, faint(row.namespace)),
    cell('primary', row.primary || h('em', { class: 'bad' }, t('none')), row.ready && faint(row.ready)),
    cell('version', row.version || '–', ' ',
      row.upToDate === 'False' && warning(t('fleet.old'), t('fleet.outdated'))),
    cell('backup', row.noBackups ? faint(t('fleet.noBackups')) : when(row.lastBackupAt)),
    cell('disk', diskBar(row.usedPercent), ' ',
      row.fullInDays < 30 && warning(t('fleet.fullIn', { n: row.fullInDays }))),
    h('td', { class: 'why' }, c && [h('b', {}, c.reason), ' ', h('span', {}, c.message)]));
}

function summary(rows) {
  const count = (...levels) => rows.filter((r) => levels.includes(r.level)).length;
  const parts = [['act', count('down', 'act'), 'fleet.needs'], ['warn', count('warn'), 'fleet.look'],
    ['busy', count('busy'), 'fleet.changing'], ['well', count('well'), 'fleet.well']];
  return h('p', { class: 'summary' }, h('b', {}, t('fleet.count', { n: rows.length })),
    parts.filter(([, n]) => n).map(([level, n, key]) => h('span', {}, levelMark(level), t(key, { n }))));
}

export class Fleet {
  #rows = []; #list; #summary;
  constructor() {
    const words = t('fleet.filter');
    this.filter = h('input', { type: 'search', id: 'filter', placeholder: words, 'aria-label': words,
      'aria-keyshortcuts': '/', oninput: () => this.#render() });
    this.filter.value = sessionStorage.getItem('filter') ?? '';
    this.#summary = new Part(h('div'), summary);
    const nothing = () => h('tr', { class: 'empty' },
      h('td', { colspan: 7 }, this.filter.value ? t('fleet.noMatch') : t('fleet.empty')));
    this.#list = new Part(h('tbody', { id: 'rows' }), (rows) => (rows.length ? rows.map(line) : nothing()));
    const heads = ['state', 'database', 'primary', 'version', 'backup', 'disk', 'why'];
    this.element = h('section', { id: 'fleet' },
      h('div', { class: 'bar' }, this.#summary.element, this.filter),
      h('table', {}, h('thead', {}, h('tr', {}, heads.map((k) => h('th', { scope: 'col' }, t(`fleet.${k}`))))),
        this.#list.element));
  }
  title() { return t('fleet.title'); }
  show(view) {
    this.#rows = view.fleet ?? [];
    if (view.loading) return;
    this.#summary.show(this.#rows, language);
    this.#render();
  }
  #render() {
    sessionStorage.setItem('filter', this.filter.value);
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = (r) => [r.namespace, r.name, r.phase, r.primary, r.version, r.concern?.reason,
      r.concern?.type].join(' ').toLowerCase();
    this.#list.show(this.#rows.filter((r) => words.every((w) => text(r).includes(w))), language, this.filter.value);
  }
  // keys: the arrows go through the lines.
  key(event) {
    const links = [...this.#list.element.querySelectorAll('a')];
    const at = links.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1 }[event.key];
    if (to === undefined || !links.length) return false;
    if (document.activeElement === this.filter && event.key !== 'ArrowDown') return false;
    if (to < 0) this.filter.focus();
    else links[Math.min(to, links.length - 1)].focus();
    return true;
  }
  focusFilter() { this.filter.focus(); this.filter.select(); }
}
