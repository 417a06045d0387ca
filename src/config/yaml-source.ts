import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type YAMLError,
} from 'yaml';
import { asError } from '../errors.ts';
import type { Fault, Path } from './fault.ts';

/** A config file: its values, and where in the text each of them stands. */
export interface YamlSource {
  /** Maps, lists and scalars; what is not a map at the top is a fault. */
  readonly tree: Record<string, unknown>;
  readonly faults: readonly Fault[];
  /** The text could not be read as YAML: the tree says nothing, and further faults would be noise. */
  readonly broken: boolean;
  /** A fault at the value of `path`, at its name, or, where there is neither, at the map that should hold it. */
  readonly faultAt: (path: Path, text: string, what?: 'name' | 'value') => Fault;
  /** Whether the scalar was written without quotes, so that YAML would have read a number or true out of it. */
  readonly isUnquoted: (path: Path) => boolean;
}

export function readYaml(name: string, text: string): YamlSource {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const at = (offset: number, path: Path, faultText: string): Fault => {
    const { line, col } = lines.linePos(offset);
    return { where: `${name}:${line || 1}:${col || 1}`, offset, path, text: faultText };
  };
  const syntax = [...document.errors, ...document.warnings];
  const { tree, treeFault } = treeOf(document);
  return {
    tree,
    faults: [
      ...syntax.map((error) => at(error.pos[0], [], syntaxText(error, text))),
      ...(treeFault === null ? [] : [at(0, [], treeFault)]),
    ],
    broken: treeFault !== null || syntax.some((error) => error.code !== 'DUPLICATE_KEY'),
    faultAt: (path, faultText, what = 'value') => at(offsetOf(document, path, what), path, faultText),
    isUnquoted: (path) => {
      const node = nodeAt(document, path);
      return isScalar(node) && node.type === 'PLAIN';
    },
  };
}

function treeOf(document: Document.Parsed): { tree: Record<string, unknown>; treeFault: string | null } {
  try {
    const value: unknown = document.toJS();
    if (value === null) return { tree: {}, treeFault: null };
    // A copy without shared parts: what one field is later set to must not show in another that was an alias of it.
    if (isMap(document.contents)) return { tree: JSON.parse(JSON.stringify(value)), treeFault: null };
    return {
      tree: {},
      treeFault: 'must be a map of fields; write for instance upstream: { url: http://127.0.0.1:3000 }',
    };
  } catch (thrown) {
    // Aliases that name nothing or themselves, or that multiply beyond measure.
    return {
      tree: {},
      treeFault: `cannot be read: ${firstLine(asError(thrown).message)}; write the values out instead of aliases`,
    };
  }
}

function syntaxText(error: YAMLError, text: string): string {
  if (error.code === 'DUPLICATE_KEY') {
    const name = /^[^\s:]+/.exec(text.slice(error.pos[0]))?.[0] ?? '';
    return `${name}: is given twice in one map; keep one of them`;
  }
  if (error.code === 'MULTIPLE_DOCS') return 'holds several documents; remove the --- and what follows it';
  return `is not YAML: ${firstLine(error.message)}; ${adviceFor(error)}`;
}

function firstLine(message: string): string {
  return message.split('\n')[0]?.replace(/[.:]$/, '') ?? '';
}

function adviceFor(error: YAMLError): string {
  switch (error.code) {
    case 'TAB_AS_INDENT':
      return 'indent with spaces';
    case 'BAD_INDENT':
    case 'BLOCK_AS_IMPLICIT_KEY':
      return 'indent the members of a map alike, close each bracket, and quote a value that holds ": "';
    default:
      return 'quote a value that holds special characters, and close each bracket and quote';
  }
}

function offsetOf(document: Document.Parsed, path: Path, what: 'name' | 'value'): number {
  if (path.length === 0) return 0;
  const parent = nodeAt(document, path.slice(0, -1));
  const pair = isMap(parent)
    ? parent.items.find(({ key }) => isScalar(key) && String(key.value) === String(path.at(-1)))
    : undefined;
  const name = isScalar(pair?.key) ? pair.key.range?.[0] : undefined;
  const value = nodeAt(document, path)?.range?.[0];
  // An empty value stands where the next line may begin: its name is easier to find.
  const isEmpty = isScalar(pair?.value) && pair.value.value === null;
  const found = what === 'name' || isEmpty ? name : value;
  return found ?? offsetOf(document, path.slice(0, -1), 'value');
}

function nodeAt(document: Document.Parsed, path: Path): Node | undefined {
  let node: unknown = document.contents;
  for (const step of path) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node))
      node = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step))?.value;
    else if (isSeq(node)) node = node.items[Number(step)];
    else return undefined;
  }
  return (isAlias(node) ? node.resolve(document) : node) as Node | undefined;
}
