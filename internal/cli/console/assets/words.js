// The words of the page, in both languages: words.json has all of them.

const languages = ['en', 'ja'];
const table = await (await fetch('words.json')).json();

const wanted = () => (navigator.languages ?? [navigator.language]).find((l) => languages.includes(l.slice(0, 2)));
export let language = localStorage.getItem('language') ?? wanted()?.slice(0, 2) ?? 'en';

export function setLanguage(to) {
  language = to;
  localStorage.setItem('language', to);
  document.documentElement.lang = to;
}
document.documentElement.lang = language;

export const otherLanguage = () => languages.find((l) => l !== language);

// t is a sentence of the table, with values in the place of {names}.
export function t(key, values = {}) {
  const text = table[key]?.[language];
  if (text === undefined) return key;
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? '');
}

// has says that there is a word: for those of the API that may be new.
export const has = (key) => key in table;
// named is a word of the API, translated where the table has it.
export const named = (kind, word) => (has(`${kind}.${word}`) ? t(`${kind}.${word}`) : word);
