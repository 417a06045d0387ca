import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { canonicalJson } from '../../src/core/canonical-json.ts';
import { parseKey } from '../../src/core/key.ts';
import type { JsonDocument } from './json-documents.ts';
import { checkMeanings, checkSpaceAround } from './json-meaning.ts';

/**
 * The vectors of others for what json-vectors.test.ts, canonical-json.test.ts and key.test.ts try with our own. They are no part of
 * the clone; where they are not beside it, this is the one test that is skipped for that.
 */
const vectors = join(import.meta.dirname, '../../../shared/vectors');
const skip = existsSync(vectors) ? false : 'no ../shared/vectors beside this clone';

function documentsIn(folder: string): JsonDocument[] {
  // Some file names hold a #: paths, not URLs.
  const path = join(vectors, 'json', folder);
  return readdirSync(path).map((name) => ({ name, body: readFileSync(join(path, name)) }));
}

interface Vector {
  readonly name: string;
  readonly raw: readonly string[];
  readonly expected?: readonly [unknown, readonly unknown[]];
}

t.test('public vectors: JSONTestSuite, structured fields', { skip }, async (t) => {
  t.test('JSONTestSuite: documents share a fingerprint if and only if they mean the same', async (t) => {
    const documents = [...documentsIn('test_parsing'), ...documentsIn('test_transform')];
    const meanings = checkMeanings(t, documents);
    t.ok(documents.length > 300, `${documents.length} documents, ${meanings} meanings`);
  });

  t.test('JSONTestSuite: white space around a document', async (t) => {
    checkSpaceAround(t, [...documentsIn('test_parsing'), ...documentsIn('test_transform')]);
  });

  t.test('JSONTestSuite: what is accepted and what is not', async (t) => {
    const duplicates = ['y_object_duplicated_key.json', 'y_object_duplicated_key_and_value.json'];
    for (const { name, body } of documentsIn('test_parsing')) {
      const form = canonicalJson(body, null);
      if (name.startsWith('n_')) t.equal(form, null, name);
      else if (name.startsWith('y_')) t.equal(form === null, duplicates.includes(name), name);
      else t.ok(form === null || form.length > 0, `${name}: ${form === null ? 'raw' : 'canonical'}`);
    }
  });

  t.test('JSONTestSuite: no two documents of test_transform share a form', async (t) => {
    const seen = new Map<string, string>();
    for (const { name, body } of documentsIn('test_transform')) {
      const form = canonicalJson(body, null);
      if (form === null) {
        t.match(name, /object_same_key|invalid_codepoint/, `${name}: raw`);
        continue;
      }
      // These two hold the same members, in another order.
      const twin = name === 'object_key_nfd_nfc.json' ? 'object_key_nfc_nfd.json' : undefined;
      t.equal(seen.get(form), twin, name);
      seen.set(form, name);
    }
    t.ok(seen.size > 10);
  });

  t.test('httpwg structured fields: quoted keys', async (t) => {
    const limits = { minLength: 0, maxLength: 255 };
    let accepted = 0;
    let refused = 0;
    for (const file of ['string.json', 'string-generated.json', 'item.json']) {
      const path = join(vectors, 'structured-fields', file);
      for (const vector of JSON.parse(readFileSync(path, 'utf8')) as Vector[]) {
        const [line] = vector.raw;
        if (line === undefined || vector.raw.length !== 1 || !line.trimStart().startsWith('"')) continue;
        const content = vector.expected?.[0];
        if (typeof content === 'string' && content.length >= 1 && content.length <= 255) {
          t.strictSame(parseKey(line, limits), { kind: 'key', key: content }, vector.name);
          accepted++;
        } else {
          t.equal(parseKey(line, limits).kind, 'invalid', vector.name);
          refused++;
        }
      }
    }
    t.ok(accepted > 90 && refused > 100, `${accepted} accepted, ${refused} refused`);
  });
});
