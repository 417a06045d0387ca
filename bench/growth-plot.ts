import type { Grown } from './growth-report.ts';
import type { Turn } from './measure.ts';
import { both, postgres, proxy } from './report.ts';
import { spreadOf } from './spread.ts';

const size = { width: 640, height: 360 };
const field = { left: 60, right: 520, top: 40, bottom: 310 };

/** Seen well on white and on black. */
const lines: readonly (readonly [name: string, colour: string, (turn: Turn) => number | null])[] = [
  ['together', '#8a5cd6', both],
  ['sidecar', '#1f8fd6', proxy],
  ['PostgreSQL', '#d67a1f', postgres],
];

/** Medians over the number of stored keys, which is to scale in powers of ten; the vertical axis begins at 0. */
export function growthPlot(results: readonly Grown[], source: string): string {
  const median = ({ turns }: Grown, figure: (turn: Turn) => number | null): number => {
    const known = turns.map(figure).filter((value) => value !== null);
    return known.length === 0 ? 0 : spreadOf(known).median;
  };
  // In whole hundreds, so that the marks are round.
  const top = 100 * Math.ceil(Math.max(1, ...results.map((result) => median(result, both))) / 90);
  const powers = results.map(({ keys }) => Math.log10(keys));
  const [low, high] = [Math.min(...powers), Math.max(...powers)];
  const x = (keys: number): number =>
    field.left + ((field.right - field.left) * (Math.log10(keys) - low)) / (high - low || 1);
  const y = (us: number): number => field.bottom - ((field.bottom - field.top) * us) / top;

  const curves = lines.map(([name, colour, figure]) => {
    const points = results.map((result) => [x(result.keys), y(median(result, figure))] as const);
    const [, lastY] = points.at(-1) ?? [0, 0];
    const path = points.map((point) => point.map((at) => at.toFixed(1)).join(',')).join(' ');
    const dots = points.map(([cx, cy]) => `<circle cx="${cx.toFixed(1)}" cy="${cy.toFixed(1)}" r="3"/>`);
    return `<g stroke="${colour}" fill="${colour}">
<polyline points="${path}" fill="none" stroke-width="2"/>
${dots.join('')}
<text x="${field.right + 10}" y="${(lastY + 4).toFixed(1)}" stroke="none">${name}</text>
</g>`;
  });
  const marks = results.map(
    ({ keys }) =>
      `<text x="${x(keys).toFixed(1)}" y="330" text-anchor="middle">${keys.toLocaleString('en')}</text>`,
  );
  const heights = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const us = share * top;
    const at = y(us).toFixed(1);
    return `<line x1="${field.left}" x2="${field.right}" y1="${at}" y2="${at}" stroke="#888" stroke-opacity="0.3"/>
<text x="${field.left - 8}" y="${at}" text-anchor="end" dominant-baseline="middle">${us.toFixed(0)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${size.height}" \
font-family="sans-serif" font-size="12" fill="#888">
<text x="${field.left}" y="20">CPU per first request, µs, by keys in the store (${escaped(source)})</text>
${[...heights, ...marks, ...curves].join('\n')}
</svg>
`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
