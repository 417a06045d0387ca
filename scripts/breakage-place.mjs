/**
 * Finds what a breakage of test/breakages changes: `in` names the function, constant, class or `Class.member` round it, wherever in src
 * that stands, and `find` a text in there. White space counts for nothing, so code may be moved and formatted anew.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const declared =
  /^(?:export )?(?:declare )?(?:abstract )?(?:async )?(?:function\*?|class|const|let|interface|type) +([\w$]+)/;
const member =
  /^(?: {2}|\t)(?:(?:static|override|readonly|async|get|set|private|protected) )*(#?[\w$]+) *(?:[(:=<?!;]|$)/;

/** The named pieces of a source, each from its name to that of the next. */
export function scopesOf(text) {
  const scopes = [];
  let outer = null;
  let inner = null;
  let at = 0;
  for (const line of text.split('\n')) {
    const name = declared.exec(line)?.[1];
    const isImport = line.startsWith('import ');
    if (name !== undefined || isImport) {
      if (outer !== null) outer.end = at;
      if (inner !== null) inner.end = at;
      inner = null;
      outer = isImport
        ? null
        : { name, isClass: /\bclass\b/.test(line.slice(0, 30)), from: at, end: text.length };
      if (outer !== null) scopes.push(outer);
    } else if (outer?.isClass) {
      const part = member.exec(line)?.[1];
      if (part !== undefined) {
        if (inner !== null) inner.end = at;
        inner = { name: `${outer.name}.${part}`, isClass: false, from: at, end: text.length };
        scopes.push(inner);
      }
    }
    at += line.length + 1;
  }
  return scopes;
}

/** `find` as a pattern to which white space, and a comma before a closing bracket, count for nothing. */
export function patternOf(find) {
  if (find instanceof RegExp) return find;
  const tokens = find.match(/[\w$]+|[^\w$\s]/g) ?? [];
  let source = '';
  for (const [i, token] of tokens.entries()) {
    const before = tokens[i - 1];
    const areWords = before !== undefined && /[\w$]$/.test(before) && /^[\w$]/.test(token);
    const gap = areWords ? '\\s+' : '\\s*';
    if (i > 0) source += /[)\]}]/.test(token) && before !== ',' ? `${gap},?\\s*` : gap;
    else if (/^[\w$]/.test(token)) source += '(?<![\\w$])';
    source += token.replace(/[$()*+.?[\\\]^{|}]/g, '\\$&');
  }
  if (/[\w$]$/.test(find.trimEnd())) source += '(?![\\w$])';
  return new RegExp(source);
}

/** All places that fit: there should be one. `texts` are the sources by path. */
export function placesOf(texts, { file, in: name, find }) {
  const pattern = patternOf(find);
  const places = [];
  for (const [path, text] of texts) {
    if (file !== undefined && file !== path) continue;
    const scopes =
      name === undefined
        ? [{ from: 0, end: text.length }]
        : scopesOf(text).filter((one) => one.name === name);
    for (const { from, end } of scopes) {
      const found = text.slice(from, end).match(new RegExp(pattern, 'g'))?.length ?? 0;
      // A pattern that says so means all of its places.
      for (let i = 0; i < (pattern.global ? Math.min(found, 1) : found); i++)
        places.push({ path, from, end });
    }
  }
  return places;
}

/** Changes `texts`; gives back the file, or what is wrong with the edit. */
export function applyEdit(texts, edit) {
  const where = [edit.in, edit.file].filter((one) => one !== undefined).join(' in ');
  const places = placesOf(texts, edit);
  const [place] = places;
  if (place === undefined) return { fault: `${where} has no ${edit.find}` };
  if (places.length > 1) return { fault: `${edit.find} stands ${places.length} times in ${where}` };
  const { path, from, end } = place;
  const text = texts.get(path);
  const broken = text.slice(from, end).replace(patternOf(edit.find), () => edit.replace);
  if (broken === text.slice(from, end)) return { fault: `${where}: nothing changes` };
  texts.set(path, text.slice(0, from) + broken + text.slice(end));
  return { file: path };
}

/** All that may be broken, by path. */
export function readSources(root) {
  const names = ['src', 'migrations', 'test/simulation'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true }).map((name) => join(folder, name)),
  );
  const files = names.filter((name) => /\.(ts|sql)$/.test(name)).toSorted((a, b) => (a < b ? -1 : 1));
  return new Map(files.map((name) => [name, readFileSync(join(root, name), 'utf8')]));
}
