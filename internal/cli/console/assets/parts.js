// Small pieces that several pages have.

import { ask } from './api.js';
import { h, proseOf } from './dom.js';
import { when } from './format.js';
import { named, t } from './words.js';

const signs = { down: '✕', act: '!', warn: '▲', busy: '⋯', well: '✓', off: '–' };

// levelMark says how urgent something is by its form and color.
export const levelMark = (level) => h('span', { class: `mark ${level}`, role: 'img',
  'aria-label': t(`level.${level}`),
  title: t(`level.${level}`) }, signs[level]);

export const phasePill = (row) => h('span', { class: `pill ${row.phase === 'Ready' ? '' : row.level}` },
  levelMark(row.level), named('phase', row.phase));

// gauge is a small bar.
function gauge(percent, level) {
  const inside = h('i', { class: level });
  inside.style.width = `${percent}%`;
  return h('span', { class: 'gauge', role: 'meter', 'aria-valuemin': 0, 'aria-valuemax': 100,
    'aria-valuenow': percent,
    'aria-label': t('fleet.disk') }, inside);
}

export function diskBar(percent) {
  if (percent === undefined || percent === null) return h('span', { class: 'faint' }, '–');
  const level = percent >= 90 ? 'act' : percent >= 80 ? 'warn' : 'well';
  return h('span', { class: 'disk' },
    gauge(percent, level), `${percent} %`);
}

// copyable is a text with a button that copies it.
export function copyable(text, key, tag = 'code') {
  const said = h('span', { class: 'said', role: 'status' });
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      said.textContent = t('copied');
    } catch {
      said.textContent = t('notCopied');
    }
    setTimeout(() => { said.textContent = ''; }, 2500);
  };
  const button = h('button', { type: 'button', class: 'small', onclick: copy, 'data-key': key }, t('copy'));
  return h('div', { class: `copy ${tag}` }, h(tag, { tabindex: 0, 'data-key': `${key}-text` }, text),
    h('span', { class: 'tools' }, said, button));
}

// troubleText says in a sentence what is wrong.
export function troubleText(trouble) {
  const where = trouble.namespace ? t('trouble.inNamespace', { namespace: trouble.namespace }) : t('trouble.inAll');
  switch (trouble.kind) {
    case 'forbidden': return trouble.right ? t('trouble.forbidden', { right: trouble.right, where })
      : t('trouble.refused');
    case 'away': return t('trouble.away');
    case 'ended': return t('trouble.ended');
    case 'unknown': return t('trouble.unknown');
    default: return t('trouble.failed');
  }
}

export function troubleBox(trouble) {
  return h('div', { class: `notice ${trouble.kind === 'forbidden' ? 'warn' : 'act'}` },
    h('strong', {}, troubleText(trouble)), trouble.since && when(trouble.since),
    trouble.message && h('small', {}, trouble.message));
}

// adviceBox is a condition with its message and what to do.
export function adviceBox(c, title) {
  return h('div', { class: `notice ${c.level}`, id: 'unpromoted' },
    h('strong', {}, levelMark(c.level), title), h('p', {}, c.message),
    c.todo && h('p', { class: 'todo' }, h('b', {}, t('todo')), ' ', proseOf(c.todo)));
}

// actionDialog shows the command of a change, and does it when the name was typed.
export function actionDialog(db, what) {
  const mayBe = (n) => !n.reader && (what !== 'switchover' || n.role !== 'primary');
  const choice = h('select', { id: 'choice' }, h('option', { value: '' }, t(`do.${what}.any`)),
    db.picture.nodes.filter(mayBe).map((n) => h('option', { value: n.name }, n.name)));
  const line = h('div');
  const typed = h('input', { id: 'confirm', autocomplete: 'off', spellcheck: 'false' });
  const go = h('button', { class: 'danger', disabled: true }, t(`do.${what}`));
  const said = h('p', { role: 'status' });
  const instance = () => (what === 'backup' ? '' : choice.value);
  const action = () => ({ namespace: db.namespace, name: db.name, what, instance: instance() });
  const fails = (e) => said.replaceChildren(troubleBox(e));
  const show = () => ask('command', action()).then((a) => line.replaceChildren(copyable(a.command, 'do')), fails);
  const dialog = h('dialog', { onclose: () => dialog.remove() }, h('form', { method: 'dialog' },
    h('h2', {}, t(`do.${what}`), ' ', h('em', {}, db.name)), h('p', {}, t(`do.${what}.says`)),
    what !== 'backup' && h('label', {}, t('do.instance'), choice), line,
    h('label', {}, t('do.confirm', { name: db.name }), typed), said,
    h('div', { class: 'buttons' }, h('button', { type: 'button', onclick: () => dialog.close() }, t('cancel')),
      go)));
  choice.addEventListener('change', show);
  typed.addEventListener('input', () => { go.disabled = typed.value !== db.name; });
  dialog.querySelector('form').addEventListener('submit', async (event) => {
    event.preventDefault();
    if (go.disabled) return;
    go.disabled = true;
    try {
      const done = await ask('do', undefined, { ...action(), confirm: typed.value });
      said.replaceChildren(h('span', { class: 'ok' }, `✓ ${done.said}`));
      setTimeout(() => dialog.close(), 2500);
    } catch (e) {
      fails(e);
    }
  });
  document.body.append(dialog);
  dialog.showModal();
  typed.focus();
  show();
}
