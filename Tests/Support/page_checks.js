// Runs inside a report, from the outside, and says what is wrong with it. The page itself has no script.
(() => {
  const known = new Set(("html head meta title style body main header footer section article h1 h2 h3 p ul ol li b i " +
    "strong small span code pre bdi figure figcaption svg desc defs pattern clipPath g path rect circle text tspan details " +
    "summary fieldset legend input label table thead tbody tr th td div").split(" "));
  const attributes = new Set(("lang charset name content http-equiv class id aria-label aria-labelledby aria-hidden " +
    "viewBox role width height patternUnits d cx cy r x y rx transform fill text-anchor type checked for scope " +
    "open clipPathUnits clip-path").split(" "));
  const colour = text => {
    const parts = text.match(/[\d.]+/g).map(Number);
    return { rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1 };
  };
  // WCAG 2.2, "relative luminance" and "contrast ratio".
  const luminance = rgb => {
    const [r, g, b] = rgb.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const ground = element => {
    for (let at = element; at; at = at.parentElement) {
      const { rgb, alpha } = colour(getComputedStyle(at).backgroundColor);
      if (alpha === 1) return rgb;
    }
    return [255, 255, 255];
  };
  const result = {
    scrollWidth: document.documentElement.scrollWidth, texts: 0, faint: [], outside: [], foreign: [], handlers: [],
    loose: [], labels: 0,
    cells: [...new Set([...document.querySelectorAll(".rows tbody tr")].map(row => row.children.length))],
    hidden: document.body.textContent.match(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu)?.filter(c => c !== "\n") ?? [],
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    if (!node.data.trim() || !box.width || element.closest(".unseen,title,desc")) continue;
    result.texts += 1;
    const style = getComputedStyle(element);
    const ink = colour(element.closest("svg") ? style.fill : style.color).rgb;
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const found = ratio(ink, ground(element));
    if (found < (isLarge ? 3 : 4.5)) result.faint.push(`${node.data.slice(0, 20)}: ${found.toFixed(2)}`);
    if (box.left < -0.5 || box.right > innerWidth + 0.5) result.outside.push(node.data.slice(0, 30));
  }
  // Labels of the picture and numbers of tiles: each inside of its box, none over another.
  const extent = node => { const range = document.createRange(); range.selectNodeContents(node); return range.getBoundingClientRect(); };
  const holds = (outer, inner, upright = true) => inner.left >= outer.left - 0.6 && inner.right <= outer.right + 0.6 &&
    (!upright || inner.top >= outer.top - 0.6 && inner.bottom <= outer.bottom + 0.6);
  const meet = (one, other) => one.left < other.right - 0.6 && other.left < one.right - 0.6 &&
    one.top < other.bottom - 0.6 && other.top < one.bottom - 0.6;
  for (const figure of document.querySelectorAll(".flow")) {
    if (getComputedStyle(figure).display === "none") continue;
    const drawing = figure.querySelector(".streams > svg").getBoundingClientRect();
    const bars = [...figure.querySelectorAll(".bar")].map(bar => bar.getBoundingClientRect());
    const labels = [...figure.querySelectorAll("li")].map(item => item.getBoundingClientRect());
    figure.querySelectorAll("li").forEach((item, index) => {
      const box = item.getBoundingClientRect(), middle = (box.top + box.bottom) / 2;
      result.labels += 1;
      if (Math.abs(middle - (bars[index].top + bars[index].bottom) / 2) > 1) result.loose.push(`${item.innerText}: not at its bar`);
      if (labels.some((other, at) => at !== index && meet(box, other))) result.loose.push(`${item.innerText}: over another`);
      if (meet(box, drawing) || !holds(figure.getBoundingClientRect(), box)) result.loose.push(`${item.innerText}: in the drawing`);
      const count = extent(item.querySelector("b"));
      // How high letters are is the font's affair; how wide its box is is the page's.
      if (!holds(box, count, false)) result.loose.push(`${item.innerText}: its count is outside`);
      for (const words of item.querySelectorAll("span")) {
        if (!holds(box, words.getBoundingClientRect())) result.loose.push(`${words.innerText}: outside`);
        if (meet(words.getBoundingClientRect(), count)) result.loose.push(`${words.innerText}: over its count`);
      }
    });
  }
  for (const tile of document.querySelectorAll(".tiles li")) {
    const count = extent(tile.querySelector("b"));
    if (!holds(tile.getBoundingClientRect(), count) || meet(count, extent(tile.querySelector(".symbol")))) {
      result.loose.push(`the tile ${tile.innerText}`);
    }
  }
  for (const element of document.querySelectorAll("*")) {
    if (!known.has(element.localName)) result.foreign.push(element.localName);
    for (const name of element.getAttributeNames()) {
      if (!attributes.has(name)) result.handlers.push(name);
    }
  }
  return result;
})()
