/** For who watches; what is measured goes to standard output. */
export const say = (line: string): void => void process.stderr.write(`${line}\n`);
