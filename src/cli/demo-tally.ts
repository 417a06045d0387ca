import { requestDone } from '../events.ts';

interface Screen {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** One line that says what happens while people try: in place at a terminal, else a new line whenever it has changed. */
export class Tally {
  readonly #screen: Screen;
  #requests = 0;
  #charges = 0;
  #replays = 0;
  #unknown = 0;
  #shown = '';
  #unsubscribe: (() => void) | null = null;

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  begin(): void {
    this.#unsubscribe = requestDone.subscribe(({ verdict, outcome }) => {
      this.#requests += 1;
      // Who waited for the first request's answer got a replay of it too.
      if (verdict === 'replay' || verdict === 'wait') this.#replays += 1;
      if (outcome === 'unknown') this.#unknown += 1;
      this.#show();
    });
    this.#show();
  }

  charged(): void {
    this.#charges += 1;
    this.#show();
  }

  /** May be called twice. */
  end(): void {
    if (this.#unsubscribe === null) return;
    this.#unsubscribe();
    this.#unsubscribe = null;
    if (this.#screen.isTTY) this.#screen.write('\n');
  }

  #show(): void {
    const unknown = this.#unknown === 0 ? '' : `, unknown ${this.#unknown}`;
    const line = `requests ${this.#requests}, charges ${this.#charges}, replays ${this.#replays}${unknown}`;
    if (this.#unsubscribe === null || line === this.#shown) return;
    this.#shown = line;
    // Erases to the end of the line: the terminal may have echoed something there.
    this.#screen.write(this.#screen.isTTY ? `\r${line}\u001b[K` : `${line}\n`);
  }
}
