/** Tools of Debian that a check needs, each of them in a package of its own name. */
import { attempt, run } from './steps.mjs';

export function missingTools(tools) {
  return tools.filter((tool) => attempt(tool, ['--version']).status === 127);
}

/** Only root may, and only where there is apt-get. */
export function canInstall() {
  return process.getuid?.() === 0 && attempt('apt-get', ['--version']).status === 0;
}

export function installPackages(names) {
  if (names.length === 0) return;
  const options = { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } };
  run('apt-get', ['update', '-qq'], options);
  run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...names], options);
}
