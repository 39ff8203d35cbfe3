// Numbers and times for people, in their language and time zone.

import { h } from './dom.js';
import { language, t } from './words.js';

const units = [['year', 31557600], ['month', 2629800], ['day', 86400], ['hour', 3600], ['minute', 60],
  ['second', 1]];

export function ago(at) {
  const seconds = (new Date(at) - Date.now()) / 1000;
  const [unit, size] = units.find(([, s]) => Math.abs(seconds) >= s) ?? units.at(-1);
  return new Intl.RelativeTimeFormat(language,
    { numeric: 'auto', style: 'short' }).format(Math.round(seconds / size), unit);
}

export const clock = (at) => new Intl.DateTimeFormat(language, {
  hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23',
}).format(new Date(at));
export const moment = (at) => new Intl.DateTimeFormat(language, {
  year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit',
    hourCycle: 'h23',
}).format(new Date(at));
export const short = (at) => new Intl.DateTimeFormat(language, {
  month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hourCycle: 'h23',
}).format(new Date(at));

// when is a moment as an element: how long ago, which goes on, and in full under the pointer.
export const when = (at) => (at ? h('time', { datetime: at, title: moment(at), 'data-ago': '' }, ago(at)) : '–');

export function refreshTimes() {
  for (const e of document.querySelectorAll('time[data-ago]')) {
    const now = ago(e.dateTime);
    if (e.textContent !== now) e.textContent = now;
  }
}

export function bytes(n) {
  const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  for (; n >= 1024 && i < names.length - 1; i++) n /= 1024;
  return `${i && n < 10 ? n.toFixed(1) : Math.round(n)} ${names[i]}`;
}

export function span(seconds) {
  if (seconds === undefined || seconds === null) return '–';
  if (seconds < 10) return t('seconds', { n: seconds.toFixed(1).replace('.0', '') });
  if (seconds < 120) return t('seconds', { n: Math.round(seconds) });
  if (seconds < 3600) return t('minutes', { n: Math.round(seconds / 60) });
  return t('hours', { n: (seconds / 3600).toFixed(1).replace('.0', '') });
}

// zoned is a moment in the local time zone, as the API and the commands take it (RFC 3339).
export function zoned(date) {
  const pad = (n) => String(Math.abs(n)).padStart(2, '0');
  const off = -date.getTimezoneOffset();
  const zone = off ? `${off < 0 ? '-' : '+'}${pad(Math.trunc(off / 60))}:${pad(off % 60)}` : 'Z';
  return `${localInput(date)}${zone}`;
}

// localInput is a moment as a field of the type datetime-local has it.
export function localInput(date) {
  const pad = (n) => String(n).padStart(2, '0');
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}T` +
    `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}
