/**
 * Builds both targets of the Dockerfile and runs them as containers: not root, read-only, without capabilities, in front of
 * a real upstream and a real PostgreSQL. As root on a Debian; installs its tools, keeps them and a base image in a cache.
 *   npm run check:image
 */
import { baseImage } from './image-base.mjs';
import { buildImage } from './image-build.mjs';
import { checkDeclared, checkEmbedded, checkServe, checkWithoutService } from './image-cases.mjs';
import { openStage } from './image-stage.mjs';
import { installTools, limitStore } from './image-tools.mjs';
import { main, run, step } from './steps.mjs';

await main('image', async () => {
  await step('Tools: buildah, runc, debootstrap', installTools);
  limitStore();
  await step('Packages of this clone', () => run(process.execPath, ['scripts/setup.mjs', 'install']));
  const base = await step('Base image (minutes, only the first time)', baseImage);
  const plain = await step('Building oncegate', () => buildImage('oncegate', base));
  const embedded = await step('Building oncegate-embedded', () => buildImage('oncegate-embedded', base));
  const stage = await step('Starting an upstream and a PostgreSQL', openStage);
  try {
    await step('Both say what they are', () => [plain, embedded].forEach(checkDeclared));
    await step('Commands without a service', () => checkWithoutService(plain, stage));
    await step('oncegate serves, replays, drains', () => checkServe(plain, stage));
    await step('oncegate-embedded keeps its answers in its volume', () => checkEmbedded(embedded, stage));
  } finally {
    await stage.close();
  }
});
