/**
 * Keeps what was worked out for the strings of earlier requests. It is bounded in number and in length, and forgets everything at
 * once when it is full: most requests have the same few strings, and a client that sends new ones each time costs only what it would
 * cost without a memo.
 */
export class BoundedMemo<Value> {
  readonly #values = new Map<string, Value>();
  readonly #maxCount: number;
  readonly #maxLength: number;

  constructor(maxCount: number, maxLength: number) {
    this.#maxCount = maxCount;
    this.#maxLength = maxLength;
  }

  get(text: string): Value | undefined {
    return this.#values.get(text);
  }

  keep(text: string, value: Value): void {
    if (text.length > this.#maxLength) return;
    if (this.#values.size === this.#maxCount) this.#values.clear();
    this.#values.set(text, value);
  }
}
