import { configJsonSchema } from '../config/json-schema.ts';
import type { Io } from './run.ts';

export function schemaCommand(io: Io): number {
  io.stdout.write(`${JSON.stringify(configJsonSchema(), null, 2)}\n`);
  return 0;
}
