// Lines over time, and the bar of what time went to, as SVG.
import {clock, drawing, duration, element, isNumber, kinds} from './text.js';

// Points of a path; a value that is not known breaks the line.
function pathOf(values, x, y) {
    let path = '', isDown = false;
    values.forEach((value, i) => {
        if (isNumber(value)) path += `${isDown ? 'L' : 'M'}${x(i).toFixed(2)} ${y(value).toFixed(2)}`;
        isDown = isNumber(value);
    });
    return path;
}

const known = values => values.filter(isNumber);

export function sparkline(values) {
    const numbers = known(values);
    if (numbers.length < 2) return null;
    const low = Math.min(...numbers), range = Math.max(...numbers) - low || 1;
    return drawing('svg', {class: 'spark', viewBox: '0 0 100 24', preserveAspectRatio: 'none', 'aria-hidden': 'true'},
        drawing('path', {d: pathOf(values, i => 100 * i / (values.length - 1), value => 22 - 20 * (value - low) / range)}));
}

const WIDTH = 600, HEIGHT = 200, LEFT = 52, BOTTOM = 22, TOP = 8;

// Round numbers within the range.
function ticks(low, high, count) {
    const rough = (high - low) / count, size = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(n => n * size).find(n => n >= rough);
    const list = [];
    for (let at = Math.ceil(low / step) * step; at <= high + step / 1e6; at += step) list.push(at);
    return list;
}

// A figure: the line, axes, and a line of text that reads the point under the pointer or the arrow keys.
export function lineChart(title, times, values, steps, format) {
    const numbers = known(values);
    if (numbers.length < 2) return element('p', {class: 'muted'}, numbers.length ? `${format(numbers[0])} so far` : 'Nothing is known yet.');
    let low = Math.min(...numbers), high = Math.max(...numbers);
    if (low === high) { low -= Math.abs(low) / 10 || 1; high += Math.abs(high) / 10 || 1; }
    const start = times[0], span = times[times.length - 1] - start || 1;
    const x = i => LEFT + (WIDTH - LEFT - 6) * (times[i] - start) / span;
    const y = value => HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value - low) / (high - low);
    const latest = values.findLastIndex(isNumber);
    const summary = `${title}: ${format(values[latest])} now, from ${format(Math.min(...numbers))} to ${format(Math.max(...numbers))} within ${duration(span)}`;
    const cursor = drawing('line', {class: 'cursor', y1: TOP, y2: HEIGHT - BOTTOM, visibility: 'hidden'});
    const dot = drawing('circle', {r: 3.5, cx: x(latest), cy: y(values[latest])});
    const reading = element('p', {class: 'reading'}, summary);
    const svg = drawing('svg', {class: 'chart', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', tabindex: 0, 'aria-label': summary},
        ticks(low, high, 4).map(at => [drawing('line', {class: 'grid', x1: LEFT, x2: WIDTH - 6, y1: y(at), y2: y(at)}),
            drawing('text', {x: LEFT - 6, y: y(at) + 4, 'text-anchor': 'end'}, format(at))]),
        [0, .5, 1].map(part => drawing('text', {x: LEFT + (WIDTH - LEFT - 6) * part, y: HEIGHT - 5, 'text-anchor': ['start', 'middle', 'end'][2 * part]},
            part ? `+${duration(part * span)}` : clock(start))),
        drawing('path', {class: 'value', d: pathOf(values, x, y)}), cursor, dot);
    let at = latest;
    const read = index => {
        at = Math.max(0, Math.min(times.length - 1, index));
        cursor.setAttribute('visibility', 'visible');
        for (const end of ['x1', 'x2']) cursor.setAttribute(end, x(at));
        dot.setAttribute('cx', x(at));
        if (isNumber(values[at])) dot.setAttribute('cy', y(values[at]));
        reading.textContent = `${isNumber(values[at]) ? format(values[at]) : 'not known'} at step ${steps[at]}, ${clock(times[at])}`;
    };
    svg.addEventListener('pointermove', event => {
        const box = svg.getBoundingClientRect(), time = start + span * ((event.clientX - box.left) / box.width * WIDTH - LEFT) / (WIDTH - LEFT - 6);
        read(times.reduce((best, one, i) => Math.abs(one - time) < Math.abs(times[best] - time) ? i : best, 0));
    });
    svg.addEventListener('keydown', event => {
        const move = {ArrowLeft: -1, ArrowRight: 1}[event.key];
        if (!move) return;
        event.preventDefault();
        read(at + move);
        svg.setAttribute('aria-label', reading.textContent);
    });
    return element('div', null, svg, reading);
}

// The job's life from left to right, each piece coloured by what it went to.
export function timelineBar(pieces) {
    const start = pieces[0].from, span = pieces[pieces.length - 1].to - start || 1;
    const names = pieces.map(piece => `${kinds[piece.kind] || piece.kind} ${duration(piece.to - piece.from)}`);
    return element('div', null, drawing('svg', {class: 'timeline', viewBox: '0 0 1000 20', preserveAspectRatio: 'none', role: 'img',
        'aria-label': `In order: ${names.slice(-12).join(', ')}`},
    pieces.map((piece, i) => drawing('rect', {class: `k-${piece.kind}`, x: 1000 * (piece.from - start) / span, y: 0, height: 20,
        width: Math.max(1.5, 1000 * (piece.to - piece.from) / span - .6)}, drawing('title', null, `${names[i]}, from ${clock(piece.from)}`)))),
    element('p', {class: 'reading'}, `${clock(start)} to ${clock(start + span)}`));
}
