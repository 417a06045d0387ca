import { BoundedMemo } from './bounded-memo.ts';
import type { CompiledRule, FingerprintRule } from './fingerprint-rule.ts';
import type { HeaderName } from './header-name.ts';
import type { MediaType } from './media-type.ts';
import type { Fate } from './response.ts';

/**
 * What one instance remembers of earlier requests. An instance makes one at its start and passes it to the functions of core that
 * profit from it. A memo saves work and never changes a result: an empty one gives the same answers.
 */
export interface Memos {
  /** By the parts of the scope: an endpoint without ids in its path has one scope for each tenant. Nobody writes into a scope. */
  readonly scopes: BoundedMemo<Buffer>;
  /** Headers on their way to the upstream, by the name as it came. */
  readonly headerNames: BoundedMemo<HeaderName>;
  /** Headers of answers, by the name as it is spelled. */
  readonly fates: BoundedMemo<Fate>;
  /** By the value of Connection, of which most messages have the same few. */
  readonly connectionNames: BoundedMemo<ReadonlySet<string>>;
  /** By the value of Content-Type, as it is spelled. */
  readonly mediaTypes: BoundedMemo<MediaType>;
  /** Rules come from the config and live as long as it does. */
  readonly rules: WeakMap<FingerprintRule, CompiledRule>;
}

/** At most 3,200 strings and their values, about a megabyte. */
export function createMemos(): Memos {
  return {
    scopes: new BoundedMemo(1_000, 256),
    headerNames: new BoundedMemo(1_000, 64),
    fates: new BoundedMemo(1_000, 64),
    connectionNames: new BoundedMemo(100, 64),
    mediaTypes: new BoundedMemo(100, 64),
    rules: new WeakMap(),
  };
}
