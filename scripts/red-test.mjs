/**
 * The first test that went red, by name, in the output of one test file. A test that was under way when the process hung
 * or crashed counts; null: no test had begun, so nothing was tested.
 */
export function redTest(tap, ending) {
  const names = [];
  for (const line of tap.split('\n')) {
    const begun = /^(?<indent> *)# Subtest: (?<name>.*)$/.exec(line)?.groups;
    if (begun !== undefined) {
      names.length = begun.indent.length / 4;
      names.push(begun.name);
    }
    const red = /^(?<indent> *)not ok \d+(?: - (?<what>.*?))?(?: \{)?$/.exec(withoutTime(line))?.groups;
    // What tap says of a file that threw while it was loaded stands outside every test.
    if (red === undefined || names.length === 0) continue;
    const around = names.slice(0, red.indent.length / 4);
    // A test that is printed when it ends has no line of its beginning.
    return [...around, red.what ?? 'no name'].join(' › ');
  }
  if (names.length > 0) return `${names.join(' › ')} (${ending})`;
  // A test says its name with its first assertion; tap says that it is there once all is loaded.
  return tap.startsWith('TAP version') ? `before its first assertion (${ending})` : null;
}

function withoutTime(line) {
  return line.replace(/ # time=\S+/, '');
}
