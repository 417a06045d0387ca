/**
 * What was worked out for the strings of the last requests. Bounded in number and in length, and forgotten all at once: most
 * requests have the same few, and a client that sends others each time costs only what it would without.
 */
export class Remembered<Value> {
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
