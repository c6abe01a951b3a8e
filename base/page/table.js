// All jobs, as a table of which only the rows on the screen exist.
import {duration, element, escaped, goodputOf, isNumber, leftOf, loss, percent, seconds, short, stepsOf} from './text.js';
import {sparkline} from './chart.js';

const MARGIN_ROWS = 8, AGE_MS = 30000;
const byName = new Intl.Collator(undefined, {numeric: true});

const rateOf = training => training.tokensPerSecond ?? training.samplesPerSecond;
const done = training => training.steps > 0 && training.step >= 0 ? training.step / training.steps : NaN;
const wayOf = job => job.waiting ? job.waiting.message || job.waiting.reason
    : ['Failed', 'Restarting', 'Suspended'].includes(job.state) ? job.message || job.reason : '';
const ageOf = (job, now) => now - seconds(job.creationTimestamp);

// name, title, the title in a card where that is shorter, class, value to sort by; down: where a first click sorts to
const columns = [
    {id: 'name', title: 'Job', value: job => `${job.name}/${job.namespace}`},
    {id: 'state', title: 'State', value: job => job.state},
    {id: 'progress', title: 'Progress', value: job => done(job.training || {}), down: true},
    {id: 'loss', title: 'Loss', value: job => (job.training || {}).loss},
    {id: 'rate', title: 'Per second', short: 'Rate', number: true, value: job => rateOf(job.training || {}), down: true},
    {id: 'gpus', title: 'GPUs', number: true, value: job => job.gpus, down: true},
    {id: 'restarts', title: 'Restarts', number: true, value: job => job.restarts, down: true},
    {id: 'goodput', title: 'Goodput', number: true, value: job => goodputOf(job, Date.now() / 1000)},
    {id: 'age', title: 'Age', number: true, value: job => -seconds(job.creationTimestamp)},
    {id: 'way', title: 'What stands in the way', value: wayOf, down: true},
];
// In the order of the list: what runs, what something stands in the way of, what rests, what is done.
const states = ['Running', 'Waiting', 'Restarting', 'Failed', 'Created', 'Suspended', 'Succeeded'];

export function progressOf(training) {
    const share = done(training);
    const bar = element('span', {class: 'bar', role: 'progressbar', 'aria-label': 'Progress', 'aria-valuemin': 0, 'aria-valuemax': 100,
        'aria-valuenow': isNumber(share) ? Math.round(100 * share) : null}, element('span'));
    bar.firstChild.style.width = `${isNumber(share) ? Math.min(100, 100 * share) : 0}%`;
    return bar;
}

function cells(job, now) {
    const training = job.training || {};
    const isDone = Boolean(job.completionTime);
    const link = element('a', {href: `#/${escaped(`${job.namespace}/${job.name}`)}`, title: `${job.namespace}/${job.name}`}, job.name);
    const step = stepsOf(training), leftText = isDone ? '' : leftOf(training);
    const left = leftText ? `, ${leftText} left` : '';
    const way = wayOf(job);
    return [
        [link, element('span', {class: 'sub'}, job.namespace)],
        [element('span', {class: `state ${job.state}`}, job.state)],
        step ? [progressOf(training), element('span', {class: 'sub'}, step + left)] : [],
        isNumber(training.loss) ? [loss(training.loss), job.losses ? sparkline(job.losses) : null] : [],
        [short(rateOf(training))],
        [job.gpus ? short(job.gpus) : ''],
        [job.restarts ? short(job.restarts) : ''],
        [percent(goodputOf(job, now))],
        [duration(ageOf(job, now))],
        [way ? element('span', {title: way}, way) : null],
    ];
}

function rowOf(job, index, now) {
    const contents = cells(job, now);
    return element('tr', {class: 'job', role: 'row', 'aria-rowindex': index + 2},
        columns.map((column, i) => element('td', {role: 'cell', 'aria-colindex': i + 1, class: `c-${column.id}${column.number ? ' number' : ''}`,
            'data-label': ['loss', 'rate', 'gpus', 'restarts', 'goodput', 'age'].includes(column.id) && contents[i][0] ? column.short || column.title : null}, contents[i])));
}

export class JobTable {
    constructor(main) {
        this.key = '';
        this.sort = {id: 'state', down: false};
        this.words = '';
        this.state = '';
        this.rows = new Map(); // key -> {job, row}
        this.list = [];
        this.build(main);
        this.frame = 0;  // that is to draw; 0: none
        this.height = 0; // of a row in pixels; 0: not measured
        this.onScroll = () => this.frame ||= requestAnimationFrame(() => this.draw());
        this.onResize = () => {
            this.height = 0;
            this.onScroll();
        };
        addEventListener('scroll', this.onScroll, {passive: true});
        addEventListener('resize', this.onResize);
        this.onKey = event => this.press(event);
        addEventListener('keydown', this.onKey);
        this.ages = setInterval(() => this.age(), AGE_MS);
    }

    close() {
        removeEventListener('scroll', this.onScroll);
        removeEventListener('resize', this.onResize);
        cancelAnimationFrame(this.frame);
        removeEventListener('keydown', this.onKey);
        clearInterval(this.ages);
    }

    // Jobs get older without news.
    age() {
        for (const known of this.rows.values()) known.job = null;
        this.draw();
    }

    build(main) {
        this.search = element('input', {type: 'search', placeholder: 'Job, namespace or message ( / )', 'aria-label': 'Filter the jobs',
            oninput: () => { this.words = this.search.value.toLowerCase(); this.filter(); }});
        this.order = element('select', {'aria-label': 'Sort by', class: 'only-narrow', onchange: () => this.sortBy(this.order.value)},
            columns.map(column => element('option', {value: column.id}, column.title)));
        this.direction = element('button', {type: 'button', class: 'only-narrow', onclick: () => this.sortBy(this.sort.id)});
        this.chips = element('div', {class: 'chips', role: 'group', 'aria-label': 'States'});
        this.notes = element('div');
        this.heads = columns.map((column, i) => element('th', {role: 'columnheader', scope: 'col', 'aria-colindex': i + 1, class: `c-${column.id}${column.number ? ' number' : ''}`},
            element('button', {type: 'button', class: 'only-wide', onclick: () => this.sortBy(column.id)}, column.title), element('span', {class: 'only-narrow'}, column.title)));
        this.above = element('td', {colspan: columns.length});
        this.below = element('td', {colspan: columns.length});
        this.body = element('tbody', {role: 'rowgroup'}, element('tr', {class: 'space', 'aria-hidden': 'true'}, this.above),
            element('tr', {class: 'space', 'aria-hidden': 'true'}, this.below));
        this.table = element('table', {class: 'jobs', role: 'table', 'aria-label': 'Jobs', 'aria-colcount': columns.length},
            element('thead', {role: 'rowgroup'}, element('tr', {role: 'row', 'aria-rowindex': 1}, this.heads)), this.body);
        this.empty = element('p', {class: 'muted'});
        main.replaceChildren(element('h1', {class: 'hidden'}, 'Jobs'), this.notes,
            element('div', {class: 'tools'}, this.search, this.order, this.direction, this.chips), this.table, this.empty);
        this.markSort();
    }

    press(event) {
        if (event.key === '/' && document.activeElement !== this.search) {
            event.preventDefault();
            this.search.focus();
        }
        const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity}[event.key];
        const row = document.activeElement.closest?.('tr.job');
        if (!steps || !row) return;
        event.preventDefault();
        this.focusRow(Math.max(0, Math.min(this.list.length - 1, Number(row.getAttribute('aria-rowindex')) - 2 + steps)));
    }

    focusRow(index) {
        const height = this.rowHeight(), top = this.body.getBoundingClientRect().top + scrollY + index * height;
        if (top < scrollY + 3 * height || top + 2 * height > scrollY + innerHeight) scrollTo(0, top - innerHeight / 2);
        this.draw();
        this.rows.get(this.list[index].key)?.row.querySelector('a').focus({preventScroll: true});
    }

    sortBy(id) {
        const column = columns.find(one => one.id === id);
        this.sort = {id, down: this.sort.id === id ? !this.sort.down : Boolean(column.down)};
        this.markSort();
        this.filter();
    }

    markSort() {
        this.order.value = this.sort.id;
        this.direction.textContent = this.sort.down ? 'Descending \u25BC' : 'Ascending \u25B2';
        columns.forEach((column, i) => {
            if (column.id === this.sort.id) this.heads[i].setAttribute('aria-sort', this.sort.down ? 'descending' : 'ascending');
            else this.heads[i].removeAttribute('aria-sort');
        });
    }

    show(jobs, server) {
        this.jobs = jobs;
        this.server = server;
        this.note();
        this.filter();
    }

    note() {
        const notes = [];
        if (this.server.server === 'operator' && !this.server.leading) {
            const pod = this.server.leader;
            notes.push(element('p', {class: 'note'}, pod ? `This operator stands by. ${pod} works on the jobs: ` : 'This operator stands by. No operator works on the jobs yet.',
                pod ? element('code', null, `kubectl -n ${this.server.namespace} port-forward pod/${pod} 8082`) : null));
        }
        if (this.server.hidden) notes.push(element('p', {class: 'note'}, this.server.hidden === 1 ? '1 more job is not shown.' : `${this.server.hidden} more jobs are not shown.`));
        if (this.notes.textContent !== notes.map(note => note.textContent).join('')) this.notes.replaceChildren(...notes);
    }

    count() {
        const counts = {};
        let gpus = 0;
        for (const job of this.jobs.values()) {
            counts[job.state] = (counts[job.state] || 0) + 1;
            if (job.state === 'Running') gpus += job.gpus || 0;
        }
        const text = JSON.stringify([counts, gpus, this.state]);
        if (text === this.counted) return;
        this.counted = text;
        const focused = document.activeElement.dataset?.state;
        this.chips.replaceChildren(...states.filter(state => counts[state] || state === this.state).map(state =>
            element('button', {type: 'button', 'data-state': state, 'aria-pressed': String(state === this.state),
                onclick: () => { this.state = this.state === state ? '' : state; this.filter(); }},
            element('span', {class: `state ${state}`}, `${state} ${counts[state] || 0}`))),
        gpus ? element('span', {class: 'muted'}, `${short(gpus)} GPUs at work`) : '');
        if (focused) this.chips.querySelector(`[data-state=${focused}]`)?.focus();
    }

    filter() {
        if (!this.jobs) return;
        this.count();
        const column = columns.find(one => one.id === this.sort.id), sign = this.sort.down ? -1 : 1;
        const list = [];
        for (const [key, job] of this.jobs) {
            if (this.state && job.state !== this.state) continue;
            if (this.words && !`${key} ${job.state} ${wayOf(job)}`.toLowerCase().includes(this.words)) continue;
            list.push({key, job, value: this.sort.id === 'state' ? states.indexOf(job.state) : column.value(job)});
        }
        // What is not known comes last, whatever the direction.
        const missing = value => value === undefined || value === null || value === '' || Number.isNaN(value);
        list.sort((a, b) => missing(a.value) - missing(b.value) ||
            (a.value < b.value ? -sign : a.value > b.value ? sign : byName.compare(a.job.name, b.job.name) || byName.compare(a.key, b.key)));
        this.list = list;
        this.table.setAttribute('aria-rowcount', list.length + 1);
        this.empty.textContent = list.length ? '' : this.jobs.size ? 'No job fits the filter.' : this.server.leading === false ? '' : 'There are no jobs.';
        this.draw();
    }

    rowHeight() {
        if (this.height) return this.height;
        const style = getComputedStyle(document.documentElement);
        return this.height = parseFloat(style.getPropertyValue('--row')) * parseFloat(style.fontSize);
    }

    draw() {
        cancelAnimationFrame(this.frame);
        this.frame = 0;
        const height = this.rowHeight(), top = this.body.getBoundingClientRect().top;
        const first = Math.max(0, Math.min(this.list.length, Math.floor(-top / height) - MARGIN_ROWS));
        const last = Math.max(first, Math.min(this.list.length, Math.ceil((innerHeight - top) / height) + MARGIN_ROWS));
        this.above.style.height = `${first * height}px`;
        this.below.style.height = `${(this.list.length - last) * height}px`;
        const now = Date.now() / 1000, kept = new Map();
        const wanted = new Set(this.list.slice(first, last).map(({key}) => key));
        for (const [key, {row}] of this.rows) { // first: what stays must not be moved, it would lose the focus
            if (wanted.has(key)) continue;
            row.remove();
            this.rows.delete(key);
        }
        let before = this.body.firstChild;
        for (let i = first; i < last; i++) {
            const {key, job} = this.list[i];
            let known = this.rows.get(key);
            if (!known || known.job !== job) known = {job, row: this.renew(known, job, i, now)};
            known.row.setAttribute('aria-rowindex', i + 2);
            if (before.nextSibling !== known.row) before.after(known.row);
            before = known.row;
            kept.set(key, known);
        }
        this.rows = kept;
    }

    // The row with its job's new numbers; who has the focus in it keeps it.
    renew(known, job, index, now) {
        const row = rowOf(job, index, now);
        if (!known) return row;
        const hadFocus = known.row.contains(document.activeElement);
        known.row.replaceChildren(...row.childNodes);
        if (hadFocus) known.row.querySelector('a').focus({preventScroll: true});
        return known.row;
    }
}
