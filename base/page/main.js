// What is known of the jobs, how news of them come, and which view shows them. docs/page.md states what is served.
import {element, escaped, readable} from './text.js';
import {JobTable} from './table.js';
import {JobView} from './job.js';

const POLL_MS = 5000, SILENT_MS = 25000, RETRY_MS = [1000, 2000, 4000, 8000, 15000, 30000];

const main = document.getElementById('main');
const link = document.getElementById('link');
const scene = document.getElementById('scene');

const jobs = new Map(); // "namespace/name" -> row
let server = null;      // the list without its jobs; null: not yet heard
let version = -1;
let view = null;
let heardAt = 0;
let socket = null, retries = 0, silence = 0, pollTimer = 0, loading = false, again = false, redraw = 0;

export const keyOf = job => `${job.namespace}/${job.name}`;
const address = path => new URL(path, document.baseURI.replace(/#.*/, ''));

function say(state, text) {
    if (link.className === state && link.textContent === text) return;
    link.className = state;
    link.textContent = text;
}

function heard() {
    heardAt = Date.now();
    say(socket && socket.readyState === WebSocket.OPEN ? 'live' : 'poll',
        socket && socket.readyState === WebSocket.OPEN ? 'Live' : `Polls every ${POLL_MS / 1000} s`);
}

function lost() {
    const since = heardAt ? ` What is shown is of ${new Date(heardAt).toLocaleTimeString()}.` : '';
    say('lost', `No connection.${since}`);
}

async function get(path) {
    const answer = await fetch(address(path), {cache: 'no-store'});
    if (answer.status === 404) return null;
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
    return answer.json();
}

// All jobs anew. One question at a time.
async function load() {
    if (loading) {
        again = true;
        return;
    }
    loading = true;
    try {
        const list = await get('api/v1/jobs');
        const known = new Set();
        for (const row of list.jobs) {
            known.add(keyOf(row));
            jobs.set(keyOf(row), row);
        }
        for (const key of jobs.keys()) if (!known.has(key)) jobs.delete(key);
        version = list.version;
        server = {...list, jobs: undefined};
        heard();
        news(null);
    } catch (error) {
        lost();
    }
    loading = false;
    if (again) {
        again = false;
        load();
    }
}

// changed: keys; null: anything may have.
function news(changed) {
    if (server.server === 'agent' && jobs.size === 1 && !location.hash) location.replace(`#/${escaped([...jobs.keys()][0])}`);
    scene.textContent = server.server === 'agent' ? 'reported by its agent'
        : server.leading ? `${jobs.size} job${jobs.size === 1 ? '' : 's'}${server.leader ? `, reported by ${server.leader}` : ''}` : 'stands by';
    if (view && (!changed || !view.key || changed.has(view.key))) show();
}

function show() {
    if (redraw) return;
    redraw = requestAnimationFrame(() => {
        redraw = 0;
        if (view && server) view.show(jobs, server);
    });
}

// ---- how news come ----

function watchSilence() {
    clearTimeout(silence);
    silence = setTimeout(() => socket && socket.close(), SILENT_MS);
}

function listen() {
    const url = address('live');
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    try {
        socket = new WebSocket(url);
    } catch (error) {
        socket = null;
        unheard();
        return;
    }
    socket.onopen = () => {
        retries = 0;
        stopPolling();
        watchSilence();
        load();
    };
    socket.onmessage = message => {
        watchSilence();
        heard();
        take(JSON.parse(message.data));
    };
    socket.onclose = unheard;
}

function unheard() {
    clearTimeout(silence);
    socket = null;
    poll();
    setTimeout(listen, RETRY_MS[Math.min(retries++, RETRY_MS.length - 1)]);
}

function poll() {
    if (pollTimer) return;
    load();
    pollTimer = setInterval(load, POLL_MS);
}

function stopPolling() {
    clearInterval(pollTimer);
    pollTimer = 0;
}

function take(message) {
    if (!server || loading) {
        if (!server || message.version > version) load();
        return;
    }
    if (message.version <= version) return;
    if (message.reload || message.after > version) {
        load();
        return;
    }
    version = message.version;
    const changed = new Set(message.gone);
    for (const key of message.gone || []) jobs.delete(key);
    for (const row of message.jobs || []) {
        changed.add(keyOf(row));
        jobs.set(keyOf(row), row);
    }
    news(changed);
}

// ---- which view ----

// What the address names; as it stands if it is not escaped as it should be.
function keyOfAddress() {
    const text = location.hash.replace(/^#\/?/, '');
    try {
        return decodeURIComponent(text);
    } catch (error) {
        return text;
    }
}

function route() {
    const key = keyOfAddress();
    if (view && view.key === key) return;
    if (view) view.close();
    view = key.includes('/') ? new JobView(main, key, get) : new JobTable(main);
    document.title = view.key ? `${readable(view.key)} - Shoal` : 'Shoal';
    if (server) show();
    if (route.wasCalled) main.focus({preventScroll: true});
    route.wasCalled = true;
}

addEventListener('hashchange', route);
document.querySelector('.skip').addEventListener('click', event => {
    event.preventDefault();
    main.focus();
});
main.replaceChildren(element('p', {class: 'muted'}, 'Loading ...'));
route();
listen();
setTimeout(() => server || load(), 300); // where a WebSocket takes its time to be refused
