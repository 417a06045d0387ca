import t from 'tap';
import { classify, StatementError } from '../../src/store/postgres/statement-error.ts';

const error = (fields: object): Error => Object.assign(new Error('said the server'), fields);

t.test('definite only where nothing can have been committed', async (t) => {
  const cases: [object, StatementError['failure']][] = [
    [{ severity: 'ERROR', code: '23514' }, 'definite'],
    [{ severity: 'ERROR', code: '55P03' }, 'definite'],
    [{ severity: 'ERROR', code: '57014' }, 'definite'],
    [{ severity: 'ERROR', code: '25006' }, 'definite'],
    [{ severity: 'ERROR', code: '42P01' }, 'definite'],
    [{ severity: 'ERROR', code: '42501', routine: 'aclcheck_error' }, 'definite'],
    [{ severity: 'FEHLER', code: '42501', routine: 'aclcheck_error' }, 'definite'],
    // The driver gives the severity as the server translates it (lc_messages).
    [{ severity: 'FEHLER', code: '22003' }, 'definite'],
    [{ severity: 'ОШИБКА', code: '55P03' }, 'definite'],
    [{ severity: 'FATAL', code: '57P01' }, 'unconfirmed'],
    [{ severity: 'ВАЖНО', code: '57P01' }, 'unconfirmed'],
    // In the middle of a commit, when the server cannot write its log. In Russian, PANIC is another word.
    [{ severity: 'PANIC', code: '53100' }, 'unconfirmed'],
    [{ severity: 'ПАНИКА', code: '53100' }, 'unconfirmed'],
    [{ severity: 'ПАНИКА', code: '42501', routine: 'XLogFileInitInternal' }, 'unconfirmed'],
    [{ severity: 'FATAL', code: '25P03' }, 'unconfirmed'],
    [{ severity: 'ВАЖНО', code: '25P03' }, 'unconfirmed'],
    [{ severity: 'ВАЖНО', code: '25P04' }, 'unconfirmed'],
    // A pooler that lost its server.
    [{ severity: 'ERROR', code: '08006' }, 'unconfirmed'],
    [{ severity: 'ERROR', code: '08P01' }, 'unconfirmed'],
    [{ severity: 'ERROR', code: '58000' }, 'unconfirmed'],
    [{ severity: 'ERROR', code: 'XX000' }, 'unconfirmed'],
    [{ severity: 'ERROR', code: '40003' }, 'unconfirmed'],
    [{ code: 'ECONNRESET' }, 'unconfirmed'],
    [{ code: 'EPIPE' }, 'unconfirmed'],
    [{}, 'unconfirmed'],
  ];
  for (const [fields, failure] of cases) {
    t.equal(classify('settle', error(fields)).failure, failure, JSON.stringify(fields));
  }
});

t.test('only what is about one row leaves the connection in use', async (t) => {
  const of = (code: string) => classify('settle', error({ severity: 'ERROR', code }));
  for (const code of ['22003', '23514', '40P01', '55P03']) {
    t.ok(of(code).concernsOneRow, code);
    t.notOk(of(code).connectionLost, code);
  }
  // Read-only, a prepared statement that is gone or no longer fits, no such table: another connection may do better.
  for (const code of ['25006', '26000', '0A000', '42P01', '57P01', '08006']) {
    t.notOk(of(code).concernsOneRow, code);
    t.ok(of(code).connectionLost, code);
  }
  t.notOk(of('55P03').isDataFault, 'a lock is not the value’s fault');
  t.notOk(of('40001').isDataFault);
  t.ok(of('22021').isDataFault);
});

t.test('says what it did, and nothing of what the row held', async (t) => {
  const failure = classify(
    'reserve',
    error({ severity: 'ERROR', code: '23505', detail: 'Key (scope, key)=(…, secret-key) already exists.' }),
  );
  t.equal(failure.message, 'reserve: said the server');
  t.notMatch(`${failure.message} ${failure.stack}`, /secret-key/);
  t.ok(failure instanceof StatementError);
});
