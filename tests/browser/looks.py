"""How a page looks, by what the browser computes: contrasts, sizes, widths, and names of what can be operated."""

COLOURS = r"""
const dot = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const known = new Map();
function rgba(color) { // of any notation
    if (!known.has(color)) {
        dot.clearRect(0, 0, 1, 1);
        dot.fillStyle = color;
        dot.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = dot.getImageData(0, 0, 1, 1).data;
        known.set(color, [r, g, b, a / 255]);
    }
    return known.get(color);
}
const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
function behind(node) {
    const layers = [];
    for (; node; node = node.parentElement) layers.push(rgba(getComputedStyle(node).backgroundColor));
    return layers.reduceRight((below, layer) => over(layer, below), [255, 255, 255, 1]);
}
function luminance(color) {
    const [r, g, b] = color.map(part => part / 255 <= .04045 ? part / 255 / 12.92 : ((part / 255 + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
}
function contrast(a, b) {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + .05) / (low + .05);
}
"""
# Texts whose contrast with what lies behind them is less than WCAG's AA asks: 4.5, of large ones 3.
FAINT = COLOURS + r"""
const faint = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
let seen = 0;
while (walker.nextNode()) {
    const node = walker.currentNode.parentElement, style = getComputedStyle(node);
    if (!walker.currentNode.data.trim() || !node.checkVisibility() || node.closest('noscript, .hidden, .skip')) continue;
    const size = parseFloat(style.fontSize), isLarge = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const back = behind(node), ink = over(rgba(node instanceof SVGElement ? style.fill : style.color), back);
    const ratio = contrast(ink, back);
    seen++;
    if (ratio < (isLarge ? 3 : 4.5)) faint.push(`${walker.currentNode.data.trim().slice(0, 30)}: ${ratio.toFixed(2)}`);
}
return [seen, faint];
"""

# Marks that tell something by their colour and have less than WCAG's 3 to what lies behind them. A mark of each kind of time is
# put into a panel first.
FAINT_MARKS = COLOURS + r"""
const panel = document.querySelector('.panel'), probe = document.createElement('div');
for (const kind of arguments[0]) probe.append(Object.assign(document.createElement('span'), {className: `key k-${kind}`}));
panel.append(probe);
const marks = [...document.querySelectorAll('.key, .timeline > span, .bar > span')].map(node => [node.className, getComputedStyle(node).backgroundColor, node.parentElement]);
for (const node of document.querySelectorAll('.state, #link')) marks.push([node.className, getComputedStyle(node, '::before').backgroundColor, node]);
for (const node of document.querySelectorAll('.chart path, .spark path')) marks.push(['line', getComputedStyle(node).stroke, node.parentElement]);
for (const node of document.querySelectorAll('.chart circle')) marks.push(['point', getComputedStyle(node).fill, node.parentElement]);
const faint = marks.map(([name, color, back]) => [name, contrast(over(rgba(color), behind(back)), behind(back))]).filter(([, ratio]) => ratio < 3);
probe.remove();
return [marks.length, faint.map(([name, ratio]) => `${name}: ${ratio.toFixed(2)}`)];
"""
# Texts of less than 11 of the window's pixels, as they come out: a drawing may be scaled.
SMALL = """
const least = 11, found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.checkVisibility() || node.closest('noscript')) continue;
    const scale = node instanceof SVGElement ? node.getScreenCTM().a : 1, size = scale * parseFloat(getComputedStyle(node).fontSize);
    if (size < least) found.push(`${walker.currentNode.data.trim().slice(0, 30)}: ${size.toFixed(1)}`);
}
return found;
"""
# Neighbours of a timeline without a gap of a pixel, pieces too small to see, and texts of a chart that stand in one another or
# outside of it.
TOUCHING = """
const found = [], box = node => node.getBoundingClientRect();
for (const one of document.querySelectorAll('.timeline > span')) {
    if (box(one).width < 1.5) found.push(`${one.title}: ${box(one).width} wide`);
    if (one.nextSibling && box(one.nextSibling).left - box(one).right < 1) found.push(`${one.title}: no gap`);
}
for (const chart of document.querySelectorAll('.chart')) {
    const texts = [...chart.querySelectorAll('text')], edge = box(chart);
    texts.forEach((one, i) => {
        const a = box(one);
        if (a.left < edge.left - 1 || a.right > edge.right + 1) found.push(`${one.textContent}: outside`);
        for (const b of texts.slice(i + 1).map(box))
            if (a.left < b.right + 8 && b.left < a.right + 8 && a.top + 2 < b.bottom && b.top + 2 < a.bottom) found.push(`${one.textContent}: in another`);
    });
}
return found;
"""
# What is wider than the window, the page or a part that a person cannot scroll.
WIDE = """
const width = document.documentElement.clientWidth;
return document.documentElement.scrollWidth <= width ? [] :
    [...document.querySelectorAll('body *')].filter(node => node.getBoundingClientRect().right > width + 1)
        .map(node => `${node.tagName}.${node.className.baseVal ?? node.className}`).slice(0, 5).concat('the page');
"""
# Cells of numbers and states, and titles of columns with the mark of the order, whose text has no room, and cells below their row.
CUT = """
const heads = [...document.querySelectorAll('table.jobs th')].filter(head => head.firstChild.checkVisibility());
heads.forEach(head => head.setAttribute('aria-sort', 'descending'));
const cut = heads.concat(...document.querySelectorAll('tr.job td:not(.c-name):not(.c-way)')).filter(cell => cell.scrollWidth > cell.clientWidth + 1);
heads.forEach(head => head.removeAttribute('aria-sort'));
const below = [...document.querySelectorAll('tr.job td')].filter(cell => cell.getBoundingClientRect().bottom > cell.parentNode.getBoundingClientRect().bottom + 1);
return cut.concat(below).map(cell => cell.innerText).slice(0, 5);
"""
# Words of a job's tables that are broken over lines, but for those of messages, and titles of more than one line.
BROKEN = r"""
const found = [], range = document.createRange();
const linesOf = () => new Set([...range.getClientRects()].filter(box => box.width > 0).map(box => Math.round(box.top))).size;
let seen = 0;
for (const cell of document.querySelectorAll('.panel th, .panel td:not(.message)')) {
    if (cell.closest('thead') && cell.closest('thead').getBoundingClientRect().width < 2) continue; // for a screen reader
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const text = walker.currentNode;
        for (const word of text.data.matchAll(cell.tagName === 'TH' ? /.+/g : /\S+/g)) {
            range.setStart(text, word.index);
            range.setEnd(text, word.index + word[0].length);
            seen++;
            if (linesOf() > 1) found.push(word[0]);
        }
    }
}
return [seen, found];
"""
OPERABLE = ["link", "button", "textbox", "searchbox", "combobox", "checkbox", "progressbar", "image", "slider", "table"]


def faint(browser):
    """Texts that AA refuses; there must have been some to look at."""
    seen, found = browser.script(FAINT)
    return found if seen > 5 else [f"only {seen} texts"]


def faint_marks(browser):
    """Marks of a job's page that cannot be told from what lies behind them; there are some of each kind of time."""
    kinds = browser.module("text.js", "return Object.keys(module.kinds)")
    seen, found = browser.script(FAINT_MARKS, kinds)
    return found if seen > len(kinds) > 10 else [f"only {seen} marks of {kinds}"]


def small(browser):
    return browser.script(SMALL)


def touching(browser):
    return browser.script(TOUCHING)


def broken(browser):
    """What of the tables of a job cannot be read as words; there must have been some."""
    seen, found = browser.script(BROKEN)
    return found if seen > 5 else [f"only {seen} words"]


def too_wide(browser):
    return browser.script(WIDE)


def cut(browser):
    return browser.script(CUT)


def nameless(browser):
    """What a screen reader would have to call by its role alone."""
    return [role for role in OPERABLE for _ in browser.all(role, "")]
