import t from 'tap';
import { alikeDocuments, brokenDocuments } from './json-documents.ts';
import { checkMeanings, checkSpaceAround, meaning } from './json-meaning.ts';

const documents = [...alikeDocuments.flat(), ...brokenDocuments];

t.test('documents share a fingerprint if and only if they mean the same', async (t) => {
  t.equal(
    checkMeanings(t, documents),
    alikeDocuments.length + brokenDocuments.length,
    'each line is one meaning',
  );
  for (const { name, body } of alikeDocuments.flat()) t.match(meaning(body), /^json /, name);
  for (const { name, body } of brokenDocuments) t.match(meaning(body), /^raw /, name);
});

t.test('white space around a valid document changes nothing, a byte within a broken one does', async (t) => {
  checkSpaceAround(t, documents);
});
