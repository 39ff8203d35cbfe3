// The search. It needs only search-index.js beside it, and also works when the page is read from the disk.
'use strict';

// find returns the sections that have all words of the query, the best first. A word may be a part of a longer one, so
// that it finds Japanese, which has no spaces.
function find(index, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const hits = [];
  for (const [page, anchor, title, text] of index.sections) {
    const [file, pageTitle] = index.pages[page];
    const high = title.toLowerCase(), all = (pageTitle + ' ' + title + ' ' + text).toLowerCase();
    if (!words.every((word) => all.includes(word))) continue;
    // A word in the heading counts more than any number of them in the text.
    const score = words.reduce((sum, word) =>
      sum + (high === word ? 40 : high.includes(word) ? 20 : 0) + Math.min(all.split(word).length, 10), 0);
    hits.push({score, target: file + '#' + anchor, page: pageTitle, title, near: near(text, words)});
  }
  return hits.sort((a, b) => b.score - a.score).slice(0, 30);
}

// near is the text around the first word that is in it.
function near(text, words) {
  const low = text.toLowerCase();
  const places = words.map((word) => low.indexOf(word)).filter((place) => place >= 0);
  const at = places.length === 0 ? 0 : Math.max(0, Math.min(...places) - 60);
  return (at > 0 ? '…' : '') + text.slice(at, at + 160) + (text.length > at + 160 ? '…' : '');
}

// start connects the search with the page. The index is loaded when somebody wants to search.
function start(root) {
  const input = document.getElementById('site:search');
  const results = document.getElementById('site:results');
  let asked = false;

  const show = () => {
    const index = globalThis.tobanIndex;
    if (!index) return;
    const hits = find(index, input.value);
    results.replaceChildren(...hits.map((hit) => entry(root, hit)));
    if (hits.length === 0) results.textContent = results.dataset.none;
    results.hidden = input.value.trim() === '';
  };
  const load = () => {
    if (asked) return;
    asked = true;
    const script = document.createElement('script');
    script.src = root + 'search-index.js';
    script.onload = show;
    document.head.append(script);
  };
  const close = () => { results.hidden = true; input.blur(); };

  input.addEventListener('focus', () => { load(); show(); });
  input.addEventListener('input', () => { load(); show(); });
  input.addEventListener('keydown', (event) => {
    const first = results.querySelector('a');
    if (event.key === 'Enter' && !event.isComposing && first) first.click();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') close();
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || event.target === input) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
  // A result may lead to another place of this page.
  results.addEventListener('click', (event) => { if (event.target.closest('a')) close(); });
  document.addEventListener('click', (event) => { if (!event.target.closest('search')) results.hidden = true; });
}

// entry sets texts as texts: nothing in a page can become HTML here.
function entry(root, hit) {
  const link = document.createElement('a');
  link.href = root + hit.target;
  for (const [name, text] of [['b', hit.title], ['small', hit.page], ['span', hit.near]]) {
    const part = document.createElement(name);
    part.textContent = text;
    link.append(part);
  }
  return link;
}

// A test runs find without a page.
if (typeof document === 'undefined') {
  globalThis.tobanFind = find;
} else {
  start(document.currentScript.dataset.root);
  // Where there is room for it, the table of contents is open.
  const contents = document.getElementById('site:contents');
  if (contents && matchMedia('(min-width: 80em)').matches) contents.open = true;
  // The navigation of a page shows where that is.
  const nav = document.getElementById('site:pages'), here = nav.querySelector('[aria-current]');
  if (here && here.offsetTop > nav.clientHeight) nav.scrollTop = here.offsetTop - nav.clientHeight / 2;
}
