// One job: how it goes, what its time went to, its pods and what was said of it.
import {bytes, clock, duration, element, escaped, goodputOf, isNumber, kinds, leadsUp, leftOf, loss, percent, renew, seconds, secondsOf, short, stepsOf} from './text.js';
import {drawCharts, lineChart, timelineBar} from './chart.js';
import {progressOf} from './table.js';

const ASK_MS = 1000, AGE_MS = 5000;

function panel(title, isWide, ...content) {
    return element('section', {class: isWide ? 'panel all' : 'panel', 'data-key': title}, element('h2', null, title), ...content);
}

const COLUMNS_OF_CARDS = 5; // and tables of messages: in a narrow window each row is a card

const cellClass = ([title, number]) => number ? 'number' : {Message: 'message', Part: 'part'}[title] ?? null;

// heads: [title, isNumber]; rows: lists of texts or nodes; keys: what each row is of, where that is not its first cell.
// The roles are told, since a card is no table to a browser.
function tableOf(label, heads, rows, {classOf, keys} = {}) {
    const hasCards = heads.length >= COLUMNS_OF_CARDS || heads.some(([title]) => title === 'Message');
    const labelOf = c => hasCards && (c > 0 || heads[c][1]) && heads[c][0] !== 'Message' ? heads[c][0] : null;
    return element('table', {role: 'table', class: hasCards ? 'cards' : null, 'aria-label': label, 'data-key': label},
        element('thead', {role: 'rowgroup'}, element('tr', {role: 'row'},
            heads.map(([title, number]) => element('th', {role: 'columnheader', scope: 'col', class: number ? 'number' : title === 'Part' ? 'of-part' : null}, title)))),
        element('tbody', {role: 'rowgroup'}, rows.map((row, i) => element('tr', {role: 'row', class: classOf ? classOf(i) : null, 'data-key': keys ? keys[i] : row[0]},
            row.map((cell, c) => element('td', {role: 'cell', class: cellClass(heads[c]), 'data-label': labelOf(c)}, cell || null))))));
}

function share(part) {
    const bar = element('span', {class: 'bar', 'aria-hidden': 'true'}, element('span'));
    bar.firstChild.style.width = `${100 * part}%`;
    return bar;
}

const time = text => text ? element('time', {datetime: text}, clock(seconds(text))) : '';

function factsOf(job) {
    const t = job.training || {}, now = Date.now() / 1000;
    const replicas = Object.entries(job.replicas || {}).map(([type, count]) =>
        `${type} ${count.active}/${count.replicas}${count.failed ? `, ${count.failed} failed` : ''}${count.succeeded ? `, ${count.succeeded} done` : ''}`);
    const rows = [
        ['Step', stepsOf(t)], ['Epoch', isNumber(t.epoch) ? String(Number(t.epoch.toFixed(2))) : ''], ['Loss', loss(t.loss)], ['Evaluation loss', loss(t.evalLoss)],
        ['Tokens per second', short(t.tokensPerSecond)], ['Samples per second', short(t.samplesPerSecond)], ['MFU', percent(t.mfu)],
        ['Time left', job.completionTime ? '' : leftOf(t)], ['Goodput', percent(goodputOf(job, now))], ['Ranks', isNumber(t.worldSize) ? String(t.worldSize) : ''],
        ['Replicas', replicas.join('; ')], ['GPUs', job.gpus ? String(job.gpus) : ''], ['Restarts', String(job.restarts ?? t.restarts ?? 0)],
        ['Last checkpoint', isNumber(t.lastCheckpointStep) ? `step ${t.lastCheckpointStep}, ${duration(now - seconds(t.lastCheckpointTime))} ago` : ''],
        ['Last progress', t.lastProgressTime ? `${duration(now - seconds(t.lastProgressTime))} ago` : ''],
        ['Age', duration(now - seconds(job.creationTimestamp))],
    ];
    return element('dl', {class: 'facts'}, rows.filter(row => row[1]).map(([name, value]) =>
        element('div', {'data-key': name}, element('dt', null, name), element('dd', null, value))));
}

// With what goes on.
function timelineOf(job, now) {
    const kind = (job.training || {}).secondsKind;
    if (!kind) return job.timeline;
    const pieces = (job.timeline || []).slice(), last = pieces[pieces.length - 1];
    const from = last ? last.to : seconds(job.creationTimestamp);
    if (last && last.kind === kind && !last.summed) pieces[pieces.length - 1] = {...last, to: Math.max(last.to, now)};
    else if (now > from) pieces.push({kind, from, to: now});
    return pieces.length ? pieces : undefined;
}

function timePanel(job) {
    const now = Date.now() / 1000, timeline = timelineOf(job, now);
    const spent = Object.entries(secondsOf(job, now)).filter(([, s]) => s > 0).sort((a, b) => b[1] - a[1]);
    if (!spent.length && !timeline) return null;
    const all = spent.reduce((sum, [, s]) => sum + s, 0);
    return panel('Where the time went', true, timeline ? timelineBar(timeline) : null,
        tableOf('Time by kind', [['Kind'], ['Time', true], ['Share', true]], spent.map(([kind, s]) =>
            [element('span', null, element('span', {class: `key k-${kind}`, 'aria-hidden': 'true'}), kinds[kind] || kind), s < 1 ? '< 1s' : duration(s), percent(s / all)]), {keys: spent.map(([kind]) => kind)}));
}

function chartPanels(job) {
    const s = job.series;
    if (!s) return [];
    const chart = (title, values, format) => lineChart({title, values, format, times: s.time, steps: s.step});
    const charts = [panel('Loss', false, chart('Loss', s.loss, loss))];
    const unit = s.unit === 'samplesPerSecond' ? 'Samples per second' : 'Tokens per second';
    if (s.rate.some(isNumber)) charts.push(panel(unit, false, chart(unit, s.rate, short)));
    // Of a job that never was of another size the number stands above.
    if (s.worldSize && new Set(s.worldSize.filter(isNumber)).size > 1) charts.push(panel('Number of ranks', false, chart('Number of ranks', s.worldSize, short)));
    return charts;
}

// From this many times the median's compute time on a rank is slow, as for the agent (agent/health/straggler.h); below it is chance.
const SLOW_RATIO = 1.3;

function rankPanel(job) {
    if (!job.ranks || !job.ranks.length) return null;
    const ratios = job.ranks.map(rank => rank.compute_ratio || 0), slowest = ratios.indexOf(Math.max(...ratios));
    const isSlow = i => ratios[i] >= SLOW_RATIO;
    const stateOf = (rank, i) => rank.state !== 'running' || !isSlow(i) ? rank.state : i === slowest ? 'running, the slowest' : 'running, slow';
    return panel('Ranks', true, tableOf('Ranks', [['Rank', true], ['Where'], ['State'], ['Does'], ['Step', true], ['Of the median\'s time', true]],
        job.ranks.map((rank, i) => [String(rank.rank), rank.pod || rank.host, stateOf(rank, i),
            [rank.phase, rank.op, rank.unit].filter(Boolean).join(' '), String(rank.step), ratios[i] ? percent(ratios[i]) : '']),
        {classOf: i => isSlow(i) || job.ranks[i].state !== 'running' ? 'slow' : null}),
    job.ranksHidden ? element('p', {class: 'muted'}, `${short(job.ranksHidden)} more are not shown.`) : null);
}

function phasePanel(job) {
    const phases = Object.entries(job.phases || {}).filter(([, s]) => s > 0);
    if (!phases.length) return null;
    const all = phases.reduce((sum, [, s]) => sum + s, 0);
    return panel('Phases of a step', false, tableOf('Phases', [['Phase'], ['Share', true], ['Part']], phases.map(([name, s]) => [name, percent(s / all), share(s / all)])));
}

function memoryPanel(job) {
    const kindsOf = Object.entries(job.memory || {}).filter(([, use]) => use.peak > 0);
    if (!kindsOf.length) return null;
    const most = Math.max(...kindsOf.map(([, use]) => use.peak));
    return panel('Memory of rank 0', false, tableOf('Memory', [['Kind'], ['Now', true], ['Peak', true], ['Part']],
        kindsOf.map(([name, use]) => [name, bytes(use.current), bytes(use.peak), share(use.peak / most)])));
}

function podPanel(job) {
    if (!job.pods || !job.pods.length) return null;
    const hung = (job.training || {}).hungNode;
    return panel('Pods', true, tableOf('Pods', [['Pod'], ['Phase'], ['Node'], ['Restarts', true], ['Message']],
        job.pods.map(pod => [pod.name, pod.phase, pod.node, pod.restarts ? String(pod.restarts) : '',
            pod.waiting ? [pod.waiting.reason, pod.waiting.message].filter(Boolean).join(': ') : ''])),
    isNumber(hung) ? element('p', {class: 'note bad'}, `Rank ${job.training.hungRank} of node rank ${hung} makes no progress.`) : null,
    job.podsHidden ? element('p', {class: 'muted'}, `${job.podsHidden} more are not shown.`) : null);
}

function storyPanels(job) {
    const panels = [];
    if (job.events && job.events.length)
        panels.push(panel('Events', true, tableOf('Events', [['When'], ['Reason'], ['Message']], job.events.map(event => [time(event.time), event.reason, event.message]),
            {keys: job.events.map(event => `${event.time} ${event.reason}`)})));
    if (job.conditions && job.conditions.length)
        panels.push(panel('Conditions', true, tableOf('Conditions', [['Condition'], ['Since'], ['Reason'], ['Message']],
            job.conditions.map(c => [`${c.type}${c.status === 'True' ? '' : ` (${c.status})`}`, time(c.lastTransitionTime), c.reason, c.message]))));
    return panels;
}

export class JobView {
    constructor(main, key, get) {
        this.key = key;
        this.get = get;
        this.main = main;
        this.content = element('div', null, element('p', {class: 'muted'}, 'Loading ...'));
        this.back = element('p', null, element('a', {href: '#/'}, 'All jobs'));
        main.replaceChildren(this.back, this.content);
        this.timer = 0;
        this.asks = 0;
        this.shown = 0; // the number of the question whose answer is shown
        this.isOver = false;
        // What was some time ago gets older without news, and above all then; of ranks and memory there is none.
        this.ages = setInterval(() => {
            if (!this.job) return;
            this.age();
            if (!this.job.completionTime) this.ask();
        }, AGE_MS);
    }

    close() {
        clearTimeout(this.timer);
        clearInterval(this.ages);
        this.isOver = true;
    }

    // Its row has changed: ask for the rest, at most once a second.
    show(jobs, server) {
        this.back.hidden = server.server === 'agent';
        if (this.timer) {
            this.stale = true;
            return;
        }
        this.ask();
        this.timer = setTimeout(() => {
            this.timer = 0;
            if (this.stale) this.show(jobs, server);
        }, ASK_MS);
        this.stale = false;
    }

    async ask() {
        const number = ++this.asks;
        let job;
        try {
            job = leadsUp(this.key) ? null : await this.get(`api/v1/jobs/${escaped(this.key)}`);
        } catch (error) {
            return; // the list says that there is no connection
        }
        if (this.isOver || number < this.shown) return; // an answer to a later question came first
        this.shown = number;
        this.draw(job);
    }

    age() {
        renew(this.content.querySelector('.facts'), factsOf(this.job));
    }

    // What stays the same stays where it is: someone may be reading it.
    draw(job) {
        this.job = job;
        renew(this.content, element('div', null, job ? contentOf(job) : [element('h1', null, this.key), element('p', {class: 'note'}, 'There is no such job.')]));
        drawCharts(this.content);
    }
}

function contentOf(job) {
    const note = job.waiting ? [job.waiting.reason, job.waiting.message].filter(Boolean).join(': ') : job.message;
    const bar = job.training && stepsOf(job.training) ? progressOf(job.training) : null;
    bar?.classList.add('wide');
    return [element('h1', null, job.name, ' ', element('span', {class: 'muted'}, job.namespace)),
        element('p', {'data-key': 'state'}, element('span', {class: `state ${job.state}`}, job.state)),
        note ? element('p', {'data-key': 'note', class: job.state === 'Failed' || job.waiting ? 'note bad' : 'muted'}, note) : null,
        bar, factsOf(job),
        element('div', {class: 'panels'}, timePanel(job), chartPanels(job), rankPanel(job), phasePanel(job), memoryPanel(job), podPanel(job), storyPanels(job))];
}
