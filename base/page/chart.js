// Lines over time as SVG, in the window's own pixels, and the bar of what time went to.
import {clock, drawing, duration, element, isNumber, kinds, renew} from './text.js';

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

const LEFT = 56, RIGHT = 6, BOTTOM = 24, TOP = 10;

// Three to five round numbers within the range; of what is counted only whole ones.
export function ticks(low, high, isWhole) {
    const size = 10 ** (Math.floor(Math.log10(high - low)) - 1);
    const steps = [10, 1].flatMap(more => [10, 5, isWhole ? 4 : 2.5, 2, 1].map(n => n * more * size)).filter(step => !isWhole || step >= 1);
    const within = step => {
        const list = [];
        for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n++) list.push(n * step);
        return list;
    };
    return within(steps.find(step => within(step).length >= 3) ?? steps.at(-1));
}

// What stands beside them: more digits where they would be the same.
export function labelsOf(list, format) {
    const labels = list.map(format);
    return new Set(labels).size === list.length ? labels : list.map(at => String(Number(at.toPrecision(7))));
}

// A chart as its parent is to have it: drawCharts() draws it there. data: title, times, values, steps, format
export function lineChart(data) {
    const numbers = known(data.values);
    if (numbers.length < 2) return element('p', {class: 'muted'}, numbers.length ? `${data.format(numbers[0])} so far` : 'Nothing is known yet.');
    const node = element('div', {class: 'line-chart', 'data-key': data.title});
    node.drawn = data;
    return node;
}

export function drawCharts(within) {
    for (const node of within.querySelectorAll('.line-chart')) (node.chart ??= new LineChart(node)).draw();
}

// The line with axes, and a text that reads the point under the pointer or the arrow keys. For a screen reader it is a slider through
// its points. What is read stays while news come.
class LineChart {
    constructor(node) {
        this.node = node;
        this.time = null; // of the point that is read; null: nobody reads
        this.svg = drawing('svg', {class: 'chart', tabindex: 0, role: 'slider', 'aria-orientation': 'horizontal',
            onfocus: () => this.time ?? this.read(this.latest),
            onblur: () => document.activeElement === this.svg || this.leave(), // else only the window has lost the focus
            onpointerdown: event => this.read(this.under(event)),
            onpointermove: event => this.read(this.under(event)),
            onpointerleave: event => event.pointerType === 'mouse' && document.activeElement !== this.svg && this.leave(),
            onkeydown: event => this.press(event)});
        this.reading = element('p', {class: 'reading', 'aria-hidden': 'true'});
        node.append(this.svg, this.reading);
        new ResizeObserver(() => this.width !== node.clientWidth && this.draw()).observe(node);
    }

    // What is to be drawn has changed, or the room for it.
    draw() {
        const {times, values, format} = this.node.drawn, numbers = known(values);
        this.least = Math.min(...numbers);
        this.most = Math.max(...numbers);
        this.low = this.least;
        this.high = this.most;
        if (this.low === this.high) { this.low -= Math.abs(this.low) / 10 || 1; this.high += Math.abs(this.high) / 10 || 1; }
        this.span = times.at(-1) - times[0] || 1;
        this.latest = values.findLastIndex(isNumber);
        this.width = this.node.clientWidth;
        this.height = Math.round(Math.max(170, Math.min(260, this.width / 3)));
        const right = this.width - RIGHT, start = times[0];
        const marks = ticks(this.low, this.high, numbers.every(Number.isInteger)), labels = labelsOf(marks, format);
        const next = drawing('svg', null,
            marks.map((at, i) => [drawing('line', {class: 'grid', x1: LEFT, x2: right, y1: this.y(at), y2: this.y(at)}),
                drawing('text', {x: LEFT - 6, y: this.y(at) + 4, 'text-anchor': 'end'}, labels[i])]),
            (this.width < 480 ? [0, 1] : [0, .5, 1]).map(part => drawing('text', {x: LEFT + (right - LEFT) * part, y: this.height - 6, 'text-anchor': ['start', 'middle', 'end'][2 * part]},
                part ? `+${duration(part * this.span)}` : clock(start))),
            drawing('path', {class: 'value', d: pathOf(values, i => this.x(i), value => this.y(value))}),
            drawing('line', {class: 'cursor', y1: TOP, y2: this.height - BOTTOM}), drawing('circle', {r: 3.5}));
        for (const {name, value} of this.svg.attributes) next.setAttribute(name, value);
        for (const [name, value] of [['width', this.width], ['height', this.height], ['aria-label', this.node.drawn.title], ['aria-valuemin', 1],
            ['aria-valuemax', times.length]]) next.setAttribute(name, value);
        renew(this.svg, next);
        this.tell();
    }

    x(i) {
        return LEFT + (this.width - LEFT - RIGHT) * (this.node.drawn.times[i] - this.node.drawn.times[0]) / this.span;
    }

    y(value) {
        return this.height - BOTTOM - (this.height - BOTTOM - TOP) * (value - this.low) / (this.high - this.low);
    }

    // Series get thinner: a point that is read and gone gives way to the nearest.
    get at() {
        return this.time === null ? this.latest : nearest(this.node.drawn.times, this.time);
    }

    under(event) {
        const part = (event.clientX - this.svg.getBoundingClientRect().left - LEFT) / (this.width - LEFT - RIGHT);
        return nearest(this.node.drawn.times, this.node.drawn.times[0] + this.span * part);
    }

    read(index) {
        const {times} = this.node.drawn;
        this.time = times[Math.max(0, Math.min(times.length - 1, index))];
        this.tell();
    }

    leave() {
        this.time = null;
        this.tell();
    }

    press(event) {
        const next = {ArrowLeft: this.at - 1, ArrowRight: this.at + 1, PageUp: this.at - 10, PageDown: this.at + 10, Home: 0, End: this.node.drawn.times.length - 1}[event.key];
        if (next === undefined) return;
        event.preventDefault();
        this.read(next);
    }

    tell() {
        const {title, times, values, steps, format} = this.node.drawn, at = this.at, isRead = this.time !== null;
        const text = isRead ? `${isNumber(values[at]) ? format(values[at]) : 'not known'} at step ${steps[at]}, ${clock(times[at])}`
            : `${title}: ${format(values[at])} now, from ${format(this.least)} to ${format(this.most)} within ${duration(this.span)}`;
        const [cursor, dot] = [this.svg.querySelector('.cursor'), this.svg.querySelector('circle')];
        cursor.setAttribute('visibility', isRead ? 'visible' : 'hidden');
        for (const end of ['x1', 'x2']) cursor.setAttribute(end, this.x(at));
        dot.setAttribute('visibility', isNumber(values[at]) ? 'visible' : 'hidden');
        dot.setAttribute('cx', this.x(at));
        dot.setAttribute('cy', isNumber(values[at]) ? this.y(values[at]) : 0);
        this.svg.setAttribute('aria-valuenow', at + 1);
        this.svg.setAttribute('aria-valuetext', text);
        if (this.reading.textContent !== text) this.reading.textContent = text;
    }
}

function nearest(list, wanted) {
    return list.reduce((best, one, i) => Math.abs(one - wanted) < Math.abs(list[best] - wanted) ? i : best, 0);
}

// The job's life from left to right, each piece coloured by what it went to; the panel shows between them. What went before an
// operator began is known as sums: it is low, and no order is claimed.
export function timelineBar(pieces) {
    const names = pieces.map(piece => `${kinds[piece.kind] || piece.kind} ${duration(piece.to - piece.from)}`);
    const summed = pieces.filter(piece => piece.summed).length, seen = names.slice(summed).slice(-12);
    const label = [summed ? `In sum before ${clock(pieces[summed - 1].to)}: ${names.slice(0, summed).join(', ')}` : '', seen.length ? `In order: ${seen.join(', ')}` : ''];
    const reading = `${clock(pieces[0].from)} to ${clock(pieces.at(-1).to)}`;
    return element('div', null,
        element('div', {class: 'timeline', role: 'img', 'aria-label': label.filter(Boolean).join('. ')}, pieces.map((piece, i) => {
            const part = element('span', {class: `k-${piece.kind}${piece.summed ? ' summed' : ''}`, 'data-key': `${piece.kind} ${piece.from}`, title: piece.summed ? `${names[i]} in sum` : `${names[i]}, from ${clock(piece.from)}`});
            part.style.flexGrow = piece.to - piece.from;
            return part;
        })),
        element('p', {class: 'reading'}, summed ? `${reading}; before ${clock(pieces[summed - 1].to)} only sums are known, not the order` : reading));
}
