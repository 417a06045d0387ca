import { OncegateError } from '../../errors.ts';

/** Loops and readers only need to know that it did not work; what was unconfirmed is found by the next pass. */
export async function available<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw new OncegateError('store_unavailable', (error as Error).message, { cause: error });
  }
}
