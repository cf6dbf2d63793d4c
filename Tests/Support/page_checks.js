// Returns the faults of a report. The browser runs this script in the page, which has no script of its own.
(() => {
  const knownElements = new Set(("html head meta title style body main header footer section article h1 h2 h3 p ul ol li b i " +
    "strong small span code pre bdi figure figcaption svg desc defs pattern clipPath g path rect circle text tspan details " +
    "summary fieldset legend input label table thead tbody tr th td div").split(" "));
  const knownAttributes = new Set(("lang charset name content http-equiv class id aria-label aria-labelledby aria-hidden " +
    "viewBox role width height patternUnits d cx cy r x y rx transform fill text-anchor type checked for scope " +
    "open clipPathUnits clip-path").split(" "));
  const parseColor = text => {
    const parts = text.match(/[\d.]+/g).map(Number);
    return { rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1 };
  };
  // WCAG 2.2, "relative luminance" and "contrast ratio".
  const luminance = rgb => {
    const [r, g, b] = rgb.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrastRatio = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const backgroundColor = element => {
    for (let ancestor = element; ancestor; ancestor = ancestor.parentElement) {
      const { rgb, alpha } = parseColor(getComputedStyle(ancestor).backgroundColor);
      if (alpha === 1) return rgb;
    }
    return [255, 255, 255];
  };
  const result = {
    scrollWidth: document.documentElement.scrollWidth, texts: 0, lowContrast: [], outside: [], unknownElements: [],
    unknownAttributes: [], misplaced: [], labels: 0,
    cells: [...new Set([...document.querySelectorAll(".rows tbody tr")].map(row => row.children.length))],
    invisible: document.body.textContent.match(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu)?.filter(c => c !== "\n") ?? [],
  };
  const extent = node => {
    const range = document.createRange();
    range.selectNodeContents(node);
    return range.getBoundingClientRect();
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    const box = extent(node);
    if (!node.data.trim() || !box.width || element.closest(".unseen,title,desc")) continue;
    result.texts += 1;
    const style = getComputedStyle(element);
    const textColor = parseColor(element.closest("svg") ? style.fill : style.color).rgb;
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const ratio = contrastRatio(textColor, backgroundColor(element));
    // The least ratios of WCAG 2.2, level AA, for large and for other text.
    if (ratio < (isLarge ? 3 : 4.5)) result.lowContrast.push(`${node.data.slice(0, 20)}: ${ratio.toFixed(2)}`);
    if (box.left < -0.5 || box.right > innerWidth + 0.5) result.outside.push(node.data.slice(0, 30));
  }
  // Labels of the diagram and numbers of tiles must be inside their boxes, and must not overlap.
  const contains = (outer, inner, checksHeight = true) => inner.left >= outer.left - 0.6 && inner.right <= outer.right + 0.6 &&
    (!checksHeight || inner.top >= outer.top - 0.6 && inner.bottom <= outer.bottom + 0.6);
  const overlap = (one, other) => one.left < other.right - 0.6 && other.left < one.right - 0.6 &&
    one.top < other.bottom - 0.6 && other.top < one.bottom - 0.6;
  for (const figure of document.querySelectorAll(".flow")) {
    if (getComputedStyle(figure).display === "none") continue;
    const drawing = figure.querySelector(".streams > svg").getBoundingClientRect();
    const bars = [...figure.querySelectorAll(".bar")].map(bar => bar.getBoundingClientRect());
    const labels = [...figure.querySelectorAll("li")].map(item => item.getBoundingClientRect());
    figure.querySelectorAll("li").forEach((item, index) => {
      const box = item.getBoundingClientRect(), middle = (box.top + box.bottom) / 2;
      result.labels += 1;
      if (Math.abs(middle - (bars[index].top + bars[index].bottom) / 2) > 1) result.misplaced.push(`${item.innerText}: not at its bar`);
      if (labels.some((other, otherIndex) => otherIndex !== index && overlap(box, other))) result.misplaced.push(`${item.innerText}: overlaps another label`);
      if (overlap(box, drawing) || !contains(figure.getBoundingClientRect(), box)) result.misplaced.push(`${item.innerText}: overlaps the diagram`);
      const count = extent(item.querySelector("b"));
      // The height of the text depends on the font, so only its width is checked.
      if (!contains(box, count, false)) result.misplaced.push(`${item.innerText}: its count is outside of the label`);
      for (const line of item.querySelectorAll("span")) {
        if (!contains(box, line.getBoundingClientRect())) result.misplaced.push(`${line.innerText}: outside of its label`);
        if (overlap(line.getBoundingClientRect(), count)) result.misplaced.push(`${line.innerText}: overlaps its count`);
      }
    });
  }
  for (const tile of document.querySelectorAll(".tiles li")) {
    const count = extent(tile.querySelector("b"));
    if (!contains(tile.getBoundingClientRect(), count) || overlap(count, extent(tile.querySelector(".symbol")))) {
      result.misplaced.push(`the tile ${tile.innerText}`);
    }
  }
  for (const element of document.querySelectorAll("*")) {
    if (!knownElements.has(element.localName)) result.unknownElements.push(element.localName);
    for (const name of element.getAttributeNames()) {
      if (!knownAttributes.has(name)) result.unknownAttributes.push(name);
    }
  }
  return result;
})()
