import type { Budget } from './budget.ts';

/** What is held on behalf of the clients of one address. */
export class Share {
  readonly budget: Budget;
  readonly address: string;

  constructor(budget: Budget, address: string | undefined) {
    this.budget = budget;
    this.address = networkOf(address ?? '');
  }

  /** For a new request: false when there is no room for it. */
  tryTake(bytes: number): boolean {
    return this.budget.tryTake(bytes, this.address);
  }

  /** For what runs already. */
  take(bytes: number): void {
    this.budget.take(bytes, this.address);
  }

  give(bytes: number): void {
    this.budget.give(bytes, this.address);
  }
}

/** Of IPv6 the first 64 bits: whoever has one such address has as many as there are. */
export function networkOf(address: string): string {
  // IPv4, also where Node writes it as `::ffff:192.0.2.1`.
  if (!address.includes(':') || address.includes('.')) return address;
  const [front = '', back] = address.split('::');
  const groups = front === '' ? [] : front.split(':');
  if (back !== undefined) {
    const behind = back === '' ? 0 : back.split(':').length;
    while (groups.length + behind < 8) groups.push('0');
  }
  return groups.slice(0, 4).join(':');
}
