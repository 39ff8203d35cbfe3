// The live picture of a database: who leads, who follows, who never votes, and through what clients come.

import { svg } from './dom.js';
import { bytes, span } from './format.js';
import { named, t } from './words.js';

const card = { w: 236, h: 92, gap: 14 };
const narrow = 620;

// cut shortens a text in its middle, so that the number at its end stays.
const cut = (text, most) => (text.length <= most ? text
  : `${text.slice(0, Math.ceil(most / 2) - 1)}…${text.slice(text.length - Math.floor(most / 2))}`);
const clip = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);

function roleWords(node, term) {
  if (node.pod === 'Absent') return t('picture.absent');
  if (node.pod === 'Ending') return t('picture.ending');
  if (node.role === 'primary') return term ? t('picture.leads', { term }) : t('picture.leadsOnly');
  if (node.reader) return t('picture.reader');
  if (node.role === 'standby') return node.voter ? t('picture.follows') : t('picture.noVote');
  return t('picture.noRole');
}

const levelOf = (node) => (node.role === 'primary' ? 'primary' : node.ready ? 'follower' : node.role ? 'warn'
  : 'away');

function disk(volume, w) {
  if (!volume) return null;
  const level = volume.usedPercent >= 90 ? 'act' : volume.usedPercent >= 80 ? 'warn' : 'well';
  const room = w - 24 - 78;
  return [svg('rect', { x: 12, y: 76, width: room, height: 5, rx: 2.5, class: 'track' }),
    svg('rect', { x: 12, y: 76, width: Math.max(2, room * volume.usedPercent / 100), height: 5, rx: 2.5,
      class: `used ${level}` }),
    svg('text', { x: w - 12, y: 82, class: 'small', 'text-anchor': 'end' },
      `${volume.usedPercent} % / ${volume.size}`)];
}

// detailOf is what runs where, or why an instance is not ready.
function detailOf(node) {
  if (node.ready) return [node.version, node.zone || node.machine].filter(Boolean).join(' · ');
  if (node.pod && node.pod !== 'Running') return named('pod', node.pod);
  return node.message || node.reason || '';
}

// content is what a card says.
function content(node, term, w, lag) {
  const detail = detailOf(node);
  const most = Math.floor((w - 24) / 6.1);
  return [svg('title', {}, [node.name, roleWords(node, term), node.message].filter(Boolean).join('\n')),
    svg('rect', { width: w, height: card.h, rx: 10, class: 'card' }),
    svg('rect', { x: 0, y: 12, width: 4, height: card.h - 24, rx: 2, class: 'edge' }),
    svg('text', { x: 14, y: 25, class: 'name' }, cut(node.name, Math.floor((w - 50) / 8))),
    node.role === 'primary' && svg('path', { class: 'crown', d: `M${w - 32} 14l5 5 5-8 5 8 5-5-2 13h-16z` }),
    svg('text', { x: 14, y: 44, class: 'role' }, clip(roleWords(node, term), most)),
    svg('text', { x: 14, y: 62, class: 'small' }, clip(detail, most - lag.length)),
    svg('text', { x: w - 12, y: 62, class: 'small lag', 'text-anchor': 'end' }, lag),
    disk(node.volume, w)];
}

// lagWords say how far a standby is behind.
function lagWords(lag, node) {
  if (!lag) return node.ready ? '' : t('picture.notStreaming');
  const behind = bytes(lag.bytes);
  return t('picture.behind', { lag: lag.seconds >= 0.1 ? `${behind} · ${span(lag.seconds)}` : behind });
}

// places says where the cards are. With little room they are below each other.
function places(width, nodes, poolers) {
  const leader = nodes.find((n) => n.role === 'primary');
  const others = nodes.filter((n) => n !== leader);
  const out = { leader, others, at: new Map(), pools: [], narrow: width < narrow };
  const [poolWidth, beside] = poolers.length ? [136, 34] : [0, 2];
  const room = (width - poolWidth - beside - 84) / 2;
  const w = out.narrow ? Math.min(300, width - 40) : Math.max(150, Math.min(card.w, room));
  out.w = w;
  const step = card.h + card.gap;
  if (out.narrow) {
    const top = poolers.length ? poolers.length * 48 + 8 : 0;
    out.pools = poolers.map((p, i) => ({ p, x: 2, y: i * 48, w }));
    out.lead = { x: 2, y: top };
    others.forEach((n, i) => out.at.set(n.name, { x: 36, y: top + (i + 1) * (step + 10) }));
    out.height = top + (others.length + 1) * (step + 10);
    return out;
  }
  const rows = Math.max(others.length, 1);
  out.height = Math.max(rows * step - card.gap, poolers.length * 56, card.h) + 4;
  const left = poolWidth + beside;
  out.lead = { x: left, y: (out.height - card.h) / 2 };
  const right = Math.max(left + w + 76, Math.min(width - w - 4, left + w + 260));
  const top = 2 + Math.max(0, (out.height - 4 - (others.length * step - card.gap)) / 2);
  others.forEach((n, i) => out.at.set(n.name, { x: right, y: top + i * step }));
  const first = out.height / 2 - poolers.length * 28 + 4;
  out.pools = poolers.map((p, i) => ({ p, x: 2, y: first + i * 56, w: poolWidth }));
  return out;
}

function wire(from, to, w, isNarrow) {
  if (isNarrow) {
    const y = to.y + card.h / 2;
    return `M${from.x + 16} ${from.y + card.h}V${y - 8}q0 8 8 8H${to.x}`;
  }
  const [x1, y1, x2, y2] = [from.x + w, from.y + card.h / 2, to.x, to.y + card.h / 2];
  const middle = (x1 + x2) / 2;
  return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
}

// poolOf is a pooler, and its wire to the primary, where there is room for it.
function poolOf({ p: pool, x, y, w }, places) {
  const [toX, toY] = [places.lead.x, places.lead.y + card.h / 2];
  const line = `M${x + w} ${y + 20}C${x + w + 18} ${y + 20} ${toX - 18} ${toY} ${toX} ${toY}`;
  return [!places.narrow && !pool.readOnly && svg('path', { class: 'wire pool', d: line }),
    svg('g', { class: `pool ${pool.ready < pool.wanted ? 'warn' : ''}`, transform: `translate(${x} ${y})` },
      svg('title', {}, pool.name), svg('rect', { width: w, height: 40, rx: 20 }),
      svg('text', { x: 18, y: 17, class: 'small' }, t(pool.readOnly ? 'picture.readPool' : 'picture.pool')),
      svg('text', { x: 18, y: 32, class: 'small strong' },
        t('picture.poolReady', { ready: pool.ready, wanted: pool.wanted })))];
}

// nobody is the place of the primary, while there is none.
function nobody({ lead, w }, last) {
  const at = { class: 'nobody', transform: `translate(${lead.x} ${lead.y})` };
  return svg('g', at, svg('rect', { width: w, height: card.h, rx: 10 }),
    svg('text', { x: 14, y: 40, class: 'name' }, t('picture.nobody')),
    last && svg('text', { x: 14, y: 60, class: 'small' }, t('picture.last', { name: cut(last, 22) })));
}

// A Picture keeps its cards: one that gets another place moves there.
export class Picture {
  #cards = new Map(); #last; #open;
  constructor(element, open) {
    this.element = element;
    this.#open = open;
    this.wires = svg('g', { class: 'wires' });
    this.nodes = svg('g');
    this.svg = svg('svg', { class: 'drawing', role: 'group' }, this.wires, this.nodes);
    element.append(this.svg);
    new ResizeObserver(() => this.#last && this.#draw()).observe(element);
  }
  show(db, replication) {
    this.#last = [db, replication];
    this.#draw();
  }
  #draw() {
    const [db, replication] = this.#last;
    const { nodes, poolers } = db.picture;
    const width = Math.floor(this.element.clientWidth);
    if (!width) return;
    const p = places(width, nodes, poolers);
    const whole = p.narrow ? width : Math.max(width, ...[...p.at.values()].map((a) => a.x + p.w + 4));
    this.svg.setAttribute('viewBox', `0 0 ${whole} ${p.height}`);
    this.svg.setAttribute('width', whole);
    this.svg.setAttribute('height', p.height);
    this.svg.setAttribute('aria-label', this.#words(p));
    this.wires.replaceChildren(...this.#wires(p, db));
    const lagOf = (n) => (p.leader && replication && n.role === 'standby'
      ? lagWords(replication.standbys.find((s) => s.name === n.name), n) : '');
    const there = new Set();
    for (const n of nodes) {
      there.add(n.name);
      this.#place(n, n === p.leader ? p.lead : p.at.get(n.name), p.w, lagOf(n));
    }
    for (const [name, g] of this.#cards) if (!there.has(name)) { g.remove(); this.#cards.delete(name); }
  }
  #words(p) {
    return `${p.leader ? `${p.leader.name}: ${t('picture.leadsOnly')}` : t('picture.nobody')}. ` +
      p.others.map((n) => `${n.name}: ${roleWords(n)}`).join('. ');
  }
  #place(node, at, w, lag) {
    const { term } = this.#last[0].picture;
    let g = this.#cards.get(node.name);
    if (!g) {
      g = svg('g', { tabindex: node.reader ? undefined : 0, role: node.reader ? undefined : 'button',
        'data-node': node.name });
      if (!node.reader) {
        g.addEventListener('click', () => this.#open(node.name));
        g.addEventListener('keydown', (e) => e.key === 'Enter' && this.#open(node.name));
      }
      this.#cards.set(node.name, g);
      this.nodes.append(g);
    }
    g.setAttribute('class', `node ${levelOf(node)}${node.reader ? ' reader' : ''}`);
    g.setAttribute('data-role', node.role);
    g.style.transform = `translate(${at.x}px, ${at.y}px)`;
    g.replaceChildren(...content(node, term, w, lag).flat(2).filter(Boolean));
  }
  #wires(p, db) {
    const out = [];
    if (!p.leader) out.push(nobody(p, db.lastPrimary));
    for (const n of p.others) {
      const state = !p.leader || !n.ready ? 'broken' : n.voter ? 'voter' : 'reader';
      out.push(svg('path', { class: `wire ${state}`, d: wire(p.lead, p.at.get(n.name), p.w, p.narrow) }));
    }
    for (const place of p.pools) out.push(...poolOf(place, p));
    return out.filter(Boolean);
  }
}
