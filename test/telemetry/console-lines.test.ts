import t from 'tap';
import { consoleLines } from '../../src/telemetry/console-lines.ts';
import { createLogger } from '../../src/telemetry/logger.ts';

t.test('a terminal gets text: one line an event, a list on lines of its own', async (t) => {
  let said = '';
  const log = createLogger('info', consoleLines({ write: (text: string) => (said += text) }));
  log.warn('a risky setting');
  log.info({ method: 'POST', status: 201, error: undefined }, 'request');
  log.info({ data: 'http://a', schema: 1, routes: ['/a  guards POST', 'other paths'] }, 'serving');
  log.debug('not asked for');
  t.same(said.replaceAll(/^\d\d:\d\d:\d\d/gm, 'TIME').split('\n'), [
    'TIME warn  a risky setting',
    'TIME info  request method=POST status=201',
    'TIME info  serving',
    '         data    http://a',
    '         schema  1',
    '         routes  /a  guards POST',
    '                 other paths',
    '',
  ]);
});

t.test('a process that ends can wait for it', async (t) => {
  const log = createLogger('info', consoleLines({ write: () => true }));
  await new Promise<void>((resolve) => log.flush(() => resolve()));
  t.pass('flushed');
});
