"""How a page looks, by what the browser computes: contrasts, widths, and names of what can be operated."""

# Texts whose contrast with what lies behind them is less than WCAG's AA asks: 4.5, of large ones 3.
FAINT = r"""
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

# What is wider than the window, the page or a part that a person cannot scroll.
WIDE = """
const width = document.documentElement.clientWidth;
return document.documentElement.scrollWidth <= width ? [] :
    [...document.querySelectorAll('body *')].filter(node => node.getBoundingClientRect().right > width + 1)
        .map(node => `${node.tagName}.${node.className.baseVal ?? node.className}`).slice(0, 5).concat('the page');
"""
# Cells of numbers and states whose text has no room.
CUT = """
return [...document.querySelectorAll('tr.job td:not(.c-name):not(.c-way)')].filter(cell => cell.scrollWidth > cell.clientWidth + 1)
    .map(cell => cell.innerText).slice(0, 5);
"""
OPERABLE = ["link", "button", "textbox", "searchbox", "combobox", "checkbox", "progressbar", "image", "table"]


def faint(browser):
    """Texts that AA refuses; there must have been some to look at."""
    seen, found = browser.script(FAINT)
    return found if seen > 5 else [f"only {seen} texts"]


def too_wide(browser):
    return browser.script(WIDE)


def cut(browser):
    return browser.script(CUT)


def nameless(browser):
    """What a screen reader would have to call by its role alone."""
    return [role for role in OPERABLE for _ in browser.all(role, "")]
