// The frame: which page is shown, in which language and light, and what keys do.

import { Stream } from './api.js';
import { Database } from './database.js';
import { h, Part } from './dom.js';
import { Fleet } from './fleet.js';
import { clock, refreshTimes } from './format.js';
import { troubleBox } from './parts.js';
import { language, otherLanguage, setLanguage, t } from './words.js';

const main = document.getElementById('page');
const themes = ['auto', 'light', 'dark'];
let theme = localStorage.getItem('theme') ?? 'auto';
let page, view, connected = true, pressed = false, presses = 0;

const notices = new Part(document.getElementById('notices'), (troubles) => together(troubles).map(troubleBox));
const bar = new Part(document.getElementById('top'), header);

function header({ namespace, known, live, write, version }) {
  const button = (id, attributes, words) => h('button', { type: 'button', id, 'data-key': id, ...attributes }, words);
  const icon = h('img', { src: 'icon.svg', alt: '', width: 22, height: 22 });
  return [h('a', { href: '#/', class: 'brand', 'data-key': 'brand' }, icon, 'Toban'),
    known && h('span', { class: 'scope' }, namespace ? t('scope.one', { namespace }) : t('scope.all')),
    known && h('span', { class: `badge ${write ? 'warn' : ''}` }, t(write ? 'mode.write' : 'mode.read')),
    h('span', { class: `live ${live}`, title: version }, t(`live.${live}`), ' ', h('span', { id: 'clock' })),
    h('nav', {}, button('theme', { onclick: nextTheme, title: t('theme') }, `◐ ${t(`theme.${theme}`)}`),
      button('language', { lang: otherLanguage(), title: t('otherLanguage'), onclick: nextLanguage },
        t('otherShort')),
      button('help', { onclick: help, 'aria-label': t('help'), title: t('help') }, '?'))];
}

// together makes one of all rights to list and watch that are missing.
function together(troubles) {
  const verbs = 'list and watch ';
  const missing = troubles.filter((x) => x.right?.startsWith(verbs));
  if (missing.length < 2) return troubles;
  const right = verbs + missing.map((x) => x.right.slice(verbs.length)).join(', ');
  return [...troubles.filter((x) => !missing.includes(x)), { ...missing[0], right, message: '' }];
}

function nextTheme() {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  localStorage.setItem('theme', theme);
  applyTheme();
  render();
}

function applyTheme() {
  document.documentElement.dataset.theme = theme;
}

function nextLanguage() {
  setLanguage(otherLanguage());
  open();
}

function help() {
  if (document.querySelector('dialog[open]')) return;
  const keys = [['/', 'filter'], ['↑ ↓', 'rows'], ['Enter', 'open'], ['Esc', 'back'], ['← →', 'moment'],
    ['t', 'theme'], ['l', 'language'], ['?', 'help']];
  const dialog = h('dialog', { onclose: () => dialog.remove() }, h('h2', {}, t('help')),
    h('dl', { class: 'keys' }, keys.map(([k, words]) => [h('dt', {}, h('kbd', {}, k)),
      h('dd', {}, t(`key.${words}`))])),
    h('form', { method: 'dialog', class: 'buttons' }, h('button', {}, t('close'))));
  document.body.append(dialog);
  dialog.showModal();
}

// open shows the page that the address names.
function open() {
  const [, namespace, name] = location.hash.split('/').map(decodeURIComponent);
  page = name ? new Database(namespace, name) : new Fleet();
  view = undefined;
  main.replaceChildren(h('p', { class: 'faint loading' }, t('loading')));
  stream.of(name ? { namespace, name } : { fleet: 1 });
  render();
}

function tell(now) {
  connected = now !== undefined;
  if (now) {
    const first = !view;
    view = now;
    if (first && !now.loading) begin();
  }
  render();
}

function begin() {
  main.replaceChildren(page.element);
  const came = sessionStorage.getItem('came');
  if (page instanceof Fleet) {
    page.show(view);
    document.querySelector(`[data-key="${CSS.escape(came ?? '')}"]`)?.focus();
  } else {
    sessionStorage.setItem('came', decodeURIComponent(location.hash.slice(2)));
    main.focus({ preventScroll: true });
  }
}

// What is pressed stays as it is until it is let go: browsers make a click only of a press and a release on one
// element.
function press({ target }) {
  pressed = Boolean(target.closest?.('a, button, summary, label, tr, g'));
  presses++;
}

// The click comes after the release, and before it is over something else may be pressed.
function release() {
  const released = presses;
  setTimeout(() => {
    if (!pressed || presses !== released) return;
    pressed = false;
    render();
  });
}

function render() {
  if (pressed) return;
  const away = view?.troubles.some((x) => x.kind === 'away');
  const live = !connected ? 'ended' : away ? 'away' : 'on';
  bar.show({ namespace: view?.namespace, known: Boolean(view), live, write: view?.write, version: view?.version },
    language, theme);
  if (view) document.getElementById('clock').textContent = clock(view.at);
  notices.show(connected ? view?.troubles ?? [] : [{ kind: 'ended' }], language);
  document.title = `${page.title()} – Toban`;
  main.classList.toggle('stale', live !== 'on');
  if (!view || view.loading) return;
  if (!page.element.isConnected) begin();
  page.show(view);
}

function key(event) {
  const typing = event.target.closest('input, select, textarea');
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
  if (event.key === 'Escape') {
    if (typing) typing.blur();
    else if (!(page instanceof Fleet)) location.hash = '#/';
    else return;
  } else if (page.key(event)) {
    // it has taken the key
  } else if (typing) return;
  else if (event.key === '/') page.focusFilter();
  else if (event.key === '?') help();
  else if (event.key === 't') nextTheme();
  else if (event.key === 'l') nextLanguage();
  else return;
  event.preventDefault();
}

const stream = new Stream(tell);
applyTheme();
addEventListener('hashchange', open);
addEventListener('keydown', key);
addEventListener('pointerdown', press);
for (const end of ['pointerup', 'pointercancel', 'blur']) addEventListener(end, release);
setInterval(refreshTimes, 5000);
open();
