/** Texts joined so that no two lists read the same: each carries its length. */
export function part(text: string): string {
  return `${text.length}:${text}`;
}

export function parts(list: readonly string[]): string {
  let text = `${list.length};`;
  for (const item of list) text += part(item);
  return text;
}

/** For stable sorts: what is equal stays in its order. */
export function byFirst(a: readonly [string, ...unknown[]], b: readonly [string, ...unknown[]]): number {
  if (a[0] === b[0]) return 0;
  return a[0] < b[0] ? -1 : 1;
}
