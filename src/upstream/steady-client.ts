import { Client, type Dispatcher } from 'undici';

/**
 * A request that undici refuses to build (a forbidden header, a bad path) makes `dispatch` return false. The pool takes
 * that for "busy, a drain will follow", but none does: each such request would cost the pool one connection for ever.
 */
export class SteadyClient extends Client {
  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    return super.dispatch(options, handler) || this.stats.size === 0;
  }
}
