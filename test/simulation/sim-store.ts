import pg from 'pg';
import { PostgresStore } from '../../src/store/postgres/postgres.ts';
import { SimDriver, type Wire } from './sim-driver.ts';

/**
 * The real store with the driver taken out: pools, reserver, settler, marker and passes run as they are, and each statement
 * goes over a wire that the simulation rules.
 */
export class SimStore extends PostgresStore {
  constructor(wire: Wire) {
    const { Pool } = pg;
    // The store makes its pools in its constructor.
    pg.Pool = class extends SimDriver {
      constructor() {
        super(wire);
      }
    } as unknown as typeof Pool;
    try {
      super({ url: 'postgres://simulated', poolSize: 6, durability: 'strict' });
    } finally {
      pg.Pool = Pool;
    }
  }
}
