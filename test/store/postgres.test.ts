import t from 'tap';
import { contract } from './contract.ts';
import { postgresHarness } from './postgres-harness.ts';

contract(t, postgresHarness);
