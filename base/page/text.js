// Elements, and numbers and times as people read them. Texts of others become text and nothing else.

const svgNames = 'http://www.w3.org/2000/svg';

// What would act on a screen instead of being read: controls but tab and newline, and what turns the direction of the text around it.
const acting = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
export const readable = text => text.replace(acting, '\ufffd');

// attributes: what is a function listens ("onclick"), what is null or false is left out.
export function element(tag, attributes, ...children) {
    return fill(document.createElement(tag), attributes, children);
}

export function drawing(tag, attributes, ...children) {
    return fill(document.createElementNS(svgNames, tag), attributes, children);
}

function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
        if (typeof value === 'function') node.addEventListener(name.slice(2), value);
        else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? '' : readable(String(value)));
    }
    for (const child of children.flat(Infinity))
        if (child !== null && child !== undefined) node.append(typeof child === 'string' ? readable(child) : child);
    return node;
}

// Makes an element say what another one says. What both have stays where it is, with its focus, its selection and a reader's place.
// Children belong together by tag and data-key, of several the first with the first. What draws itself (drawn) gets what it is to draw.
export function renew(node, next) {
    for (const {name} of [...node.attributes]) if (!next.hasAttribute(name)) node.removeAttribute(name);
    for (const {name, value} of next.attributes) {
        if (node.getAttribute(name) === value) continue;
        if (name === 'style') node.style.cssText = value; // as an attribute the Content-Security-Policy forbids it
        else node.setAttribute(name, value);
    }
    if (next.drawn) node.drawn = next.drawn;
    else renewChildren(node, [...next.childNodes]);
}

const kindOf = child => `${child.nodeName} ${child.dataset?.key ?? ''}`;

function renewChildren(node, wanted) {
    const had = new Map();
    for (const child of node.childNodes) had.set(kindOf(child), [...had.get(kindOf(child)) || [], child]);
    const chosen = wanted.map(child => had.get(kindOf(child))?.shift() || child);
    for (const left of had.values()) for (const child of left) child.remove(); // first: what stays must not be moved
    let place = node.firstChild;
    chosen.forEach((child, i) => {
        if (child === place) place = place.nextSibling;
        else node.insertBefore(child, place);
        if (child === wanted[i]) return;
        if (child.nodeType === Node.ELEMENT_NODE) renew(child, wanted[i]);
        else if (child.data !== wanted[i].data) child.data = wanted[i].data;
    });
}

// A job's key, "namespace/name", in an address: an agent's job has any name that --rdzv_id gives it.
export const escaped = key => key.split('/').map(encodeURIComponent).join('/');

// Whether a step of a key is '.' or '..', which lead up in an address; escaping leaves them as they are. No job is asked for so.
export const leadsUp = key => key.split('/').some(step => step === '.' || step === '..');

export const isNumber = value => typeof value === 'number' && Number.isFinite(value);

// 1234567 -> "1.23M"
export function short(value) {
    if (!isNumber(value)) return '';
    const units = ['', 'k', 'M', 'G', 'T', 'P'];
    let unit = 0, rest = Math.abs(value);
    for (; rest >= 999.5 && unit < units.length - 1; unit++) rest /= 1000;
    return (value < 0 ? '-' : '') + (unit || !Number.isInteger(value) ? Number(rest.toPrecision(3)) : rest) + units[unit];
}

export function bytes(value) {
    if (!isNumber(value)) return '';
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    let unit = 0;
    for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
    return `${Number(value.toPrecision(3))} ${units[unit]}`;
}

export const loss = value => isNumber(value) ? String(Number(value.toPrecision(4))) : '';
export const percent = value => isNumber(value) ? `${(100 * value).toFixed(1)} %` : '';

// The two largest units: "1h20m"
export function duration(seconds) {
    if (!isNumber(seconds)) return '';
    let rest = Math.max(0, Math.round(seconds));
    const parts = [];
    for (const [name, size] of [['d', 86400], ['h', 3600], ['m', 60], ['s', 1]]) {
        const count = Math.floor(rest / size);
        rest -= count * size;
        if (count || parts.length || name === 's') parts.push(count + name);
    }
    return parts.slice(0, 2).filter((part, i) => i === 0 || !part.startsWith('0')).join('');
}

// Of a job's training: "1200/5000", and the time that the steps left will take.
export const stepsOf = training => !isNumber(training.step) ? '' : training.steps ? `${training.step}/${training.steps}` : String(training.step);
export const leftOf = training => duration(training.secondsLeft);

export const seconds = time => time ? Date.parse(time) / 1000 : NaN;

export function clock(unixSeconds) {
    const time = new Date(1000 * unixSeconds);
    return isNumber(unixSeconds) ? time.toLocaleString([], {month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit'}) : '';
}

export const kinds = {
    step: 'steps', dataLoading: 'data loading', evaluation: 'evaluation', checkpointSave: 'checkpoint save',
    checkpointRestore: 'checkpoint restore', initialization: 'initialization', peerWait: 'waiting for peers',
    lostWork: 'lost work done again', recovery: 'recovery', pending: 'pending', containerStart: 'image and container start',
    suspended: 'suspended', untold: 'not told', other: 'other',
};

// The seconds of a job by kind until now: what goes on is of secondsKind, and not written before it ends.
export function secondsOf(job, now) {
    const t = job.training || {}, spent = {...t.seconds};
    const open = now - seconds(job.creationTimestamp) - Object.values(spent).reduce((sum, s) => sum + s, 0);
    if (t.secondsKind && open > 0) spent[t.secondsKind] = (spent[t.secondsKind] || 0) + open;
    return spent;
}

export function goodputOf(job, now) {
    const t = job.training || {};
    if (!t.secondsKind || !isNumber(t.goodput)) return t.goodput;
    const {suspended = 0, untold = 0, ...others} = secondsOf(job, now);
    return (others.step || 0) / Object.values(others).reduce((sum, s) => sum + s, 0);
}
