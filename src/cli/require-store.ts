import type { StoreConfig } from '../config/config.ts';
import { OncegateError } from '../errors.ts';

/** Never falls back to an embedded store: see StoreConfig's `none`. */
export function requireStore(store: StoreConfig): Exclude<StoreConfig, { kind: 'none' }> {
  if (store.kind !== 'none') return store;
  throw new OncegateError(
    'store_missing',
    'no store: set DATABASE_URL, or store.url in the config, or use --embedded to try it on this machine',
  );
}
