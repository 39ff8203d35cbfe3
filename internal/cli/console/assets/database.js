// The page of one database.

import { h, Part, proseOf } from './dom.js';
import { span, when } from './format.js';
import { Logs } from './logs.js';
import { actionDialog, adviceBox, levelMark, phasePill, troubleBox } from './parts.js';
import { Picture } from './picture.js';
import { proofWords, Restore } from './restore.js';
import { has, language, named, t } from './words.js';

const topics = ['failover', 'switchover', 'backup', 'proof', 'restore', 'upgrade', 'change', 'restart', 'drill',
  'stop', 'other'];

const buttons = (db) => h('div', { class: 'buttons' }, ['switchover', 'backup', 'restart'].map((what) => h('button',
  { type: 'button', 'data-key': `do-${what}`, onclick: () => actionDialog(db, what) }, `${t(`do.${what}`)}…`)));

function titleOf(db, write) {
  const back = h('a', { href: '#/', class: 'back', 'data-key': 'back', 'aria-label': t('back') }, '←');
  return h('div', { class: 'title' }, h('h1', {}, back, ' ', db.name, h('span', { class: 'faint' }, db.namespace)),
    phasePill(db), write && buttons(db));
}

function head(db, write) {
  const fact = (key, ...value) => h('div', {}, h('dt', {}, t(key)), h('dd', {}, value));
  return [titleOf(db, write),
    db.unpromoted && adviceBox(db.unpromoted, t('unpromoted', { reason: db.unpromoted.reason })),
    db.underWay.map((w) => h('div', { class: 'notice busy' }, h('strong', {}, levelMark('busy'),
      t(`underWay.${w.what}`)), w.message)),
    db.refused && h('div', { class: 'notice warn' }, h('strong', {}, levelMark('warn'), t('refused')), db.refused),
    h('dl', { class: 'facts' }, fact('fact.primary', db.primary || h('em', { class: 'bad' }, t('none'))),
      fact('fact.ready', db.ready || '–'),
      fact('fact.version', db.version || '–'), fact('fact.durability', named('durability', db.durability)),
      fact('fact.backup', db.noBackups ? t('fleet.noBackups') : when(db.lastBackupAt)),
      fact('fact.archive', db.archive.windows.length ? span(db.archive.lagSeconds) : '–'),
        fact('fact.age', when(db.created)))];
}

function condition(c) {
  const reason = c.status === 'True' ? c.reason : `${named('status', c.status)} · ${c.reason}`;
  return h('li', { class: c.level }, levelMark(c.level), h('div', {},
    h('p', {}, h('b', {}, c.type), ' ', h('span', { class: 'faint' }, reason), ' ',
      h('span', { class: 'faint right' }, when(c.since))),
    c.message && h('p', { class: 'message' }, c.message),
    c.todo && h('p', { class: 'todo' }, h('b', {}, t('todo')), ' ', proseOf(c.todo))));
}

function conditions(all) {
  const open = all.filter((c) => c.level !== 'well');
  const well = all.filter((c) => c.level === 'well');
  const list = (some) => h('ul', { class: 'conditions' }, some.map(condition));
  const allWell = () => h('p', { class: 'allwell' }, levelMark('well'), t('conditions.well'));
  return [open.length ? list(open) : allWell(),
    well.length && h('details', { 'data-key': 'well' },
      h('summary', {}, t('conditions.rest', { n: well.length })), list(well))];
}

const proofLevels = { proved: 'well', refuted: 'act', open: 'busy' };

function backupLine(b) {
  const cell = (label, ...content) => h('td', { 'data-label': t(`backups.${label}`) }, content);
  const about = [named('backupType', b.type ?? ''), b.keep && t('backups.kept'), b.instance].filter(Boolean);
  const failed = b.endedAt && b.phase !== 'Completed';
  const proof = { class: `badge ${proofLevels[b.proof.is] ?? ''}`, title: b.proof.message };
  return h('tr', { title: b.message },
    h('th', { scope: 'row' }, b.name, h('span', { class: 'faint' }, about.join(' · '))),
    cell('ended', b.endedAt ? when(b.endedAt) : `${named('phase', b.phase || 'Pending')} ${b.done ?? ''}`,
      failed && [' ', h('span', { class: 'badge act' }, named('phase', b.phase))]),
    cell('took', span(b.seconds)),
    cell('size', b.size || '–',
      b.stored && h('span', { class: 'faint' }, t('backups.stored', { size: b.stored }))),
    cell('proof', h('span', proof, proofWords(b))));
}

function backups(all, known) {
  if (!all.length) return h('p', { class: 'faint' }, t(known ? 'backups.none' : 'backups.unknown'));
  const heads = ['name', 'ended', 'took', 'size', 'proof'];
  return h('table', {},
    h('thead', {}, h('tr', {}, heads.map((k) => h('th', { scope: 'col' }, t(`backups.${k}`))))),
    h('tbody', {}, all.map(backupLine)));
}

const reasonOf = (m) => (has(`event.${m.reason}`) ? t(`event.${m.reason}`, { who: m.message }) : m.reason);

function happened(m) {
  const words = m.reason !== 'SpecChanged' && m.message;
  return h('li', { class: m.warning ? 'warn' : '' },
    h('span', { class: `topic ${m.topic}` }, t(`topic.${m.topic}`)),
    h('div', {},
      h('p', {}, h('b', {}, reasonOf(m)), ' ', m.times && h('span', { class: 'faint' }, `×${m.times}`),
        h('span', { class: 'faint right' }, when(m.at))),
      words && h('p', { class: 'message' }, words)));
}

class Timeline {
  #only = ''; #all = []; #most = 12;
  constructor() {
    this.list = new Part(h('div'), (all, chosen, most) => [this.#chips(all, chosen),
      h('ol', { class: 'timeline' }, this.#wanted(all).slice(0, most).map(happened)),
      this.#wanted(all).length > most && h('button', { type: 'button', 'data-key': 'more',
        onclick: () => { this.#most += 40; this.#render(); } }, t('timeline.more'))]);
    this.element = this.list.element;
  }
  #wanted(all) { return all.filter((m) => !this.#only || (this.#only === 'warnings' ? m.warning
    : m.topic === this.#only)); }
  #chips(all, chosen) {
    const chip = (value, words) => h('button', { type: 'button', class: 'chip',
      'aria-pressed': String(chosen === value), 'data-key': `topic-${value}`,
      onclick: () => { this.#only = value; this.#render(); } }, words);
    return h('div', { class: 'chips' }, chip('', t('timeline.all')), all.some((m) => m.warning)
      && chip('warnings', t('timeline.warnings')),
      topics.filter((k) => all.some((m) => m.topic === k)).map((k) => chip(k, t(`topic.${k}`))));
  }
  show(all) { this.#all = all; this.#render(); }
  #render() { this.list.show(this.#all, this.#only, this.#most, language); }
}

const section = (key, ...content) => h('section', { class: key, 'aria-labelledby': `h-${key}` },
  h('h2', { id: `h-${key}` }, t(`section.${key}`)), content);

export class Database {
  constructor(namespace, name) {
    this.name = name;
    this.gone = h('div', { class: 'notice act', hidden: true }, h('strong', {}, t('gone', { name, namespace })),
      ' ', h('a', { href: '#/' }, t('gone.back')));
    this.head = new Part(h('div', { id: 'head' }), head);
    this.conditions = new Part(h('div'), conditions);
    this.backups = new Part(h('div'), backups);
    this.note = new Part(h('div'), (trouble) => trouble && h('p', { class: 'faint' }, trouble.kind === 'forbidden'
      ? t('picture.noLag') : t('picture.lagLater')));
    this.timeline = new Timeline();
    this.restore = new Restore();
    this.body = h('div', { class: 'grid', hidden: true });
    this.element = h('article', { id: 'database' }, this.gone, this.head.element, this.body);
  }
  title() { return this.name; }
  // The sections are made when the database is there: the logs need to know the instances.
  #begin(db) {
    const canvas = h('div', { class: 'canvas' });
    this.logs = new Logs(db);
    this.body.append(
      h('div', { class: 'column' }, section('picture', canvas, this.note.element),
        section('restore', this.restore.element),
        section('backups', this.backups.element)),
      h('div', { class: 'column' }, section('conditions', this.conditions.element),
        section('timeline', this.timeline.element)),
      section('logs', this.logs.element));
    this.body.hidden = false;
    this.picture = new Picture(canvas, (instance) => this.logs.of(instance));
  }
  show(view) {
    const db = view.database;
    this.gone.hidden = Boolean(db) || view.loading;
    this.body.classList.toggle('stale', !db);
    if (!db) return;
    if (!this.picture) this.#begin(db);
    this.head.show(db, view.write, language);
    this.picture.show(db, view.replication);
    this.note.show(view.replicationTrouble ?? null, language);
    this.conditions.show(db.conditions, language);
    this.restore.show(db, view.at);
    this.backups.show(db.backups, db.knowsBackups, language);
    this.timeline.show(db.timeline);
  }
  key() { return false; }
  focusFilter() { this.logs?.find.focus(); }
}
