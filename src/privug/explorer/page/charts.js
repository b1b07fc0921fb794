// Pictures: beliefs as lines or bars, the joint of secret and output as a heat map, privacy against utility.

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const HEIGHT = 230;
const DECADES = 1e4; // what is smaller, in proportion, is drawn at the left edge of a log scale

export function element(tag, text = "", classes = "") {
  const made = document.createElement(tag);
  made.textContent = text; // texts come from data and stay texts
  if (classes) made.className = classes;
  return made;
}

function axes(x, y) {
  const values = (u, splits) => splits.map((one) => (one === null ? "" : String(Number(one.toPrecision(3)))));
  const look = { values, stroke: css("--soft"), grid: { stroke: css("--rule"), width: 1 }, ticks: { stroke: css("--rule") } };
  return [{ ...look, label: x, labelSize: 20, size: 36 }, { ...look, label: y, labelSize: 20, size: 58 }];
}

const plots = new Map(); // by what holds them: each listens to the window until it is destroyed

// Empty what holds charts.
export function clear(host) {
  for (const one of plots.get(host) || []) one.destroy();
  plots.delete(host);
  host.replaceChildren();
}

function chart(host, label, options, data) {
  const figure = element("figure");
  figure.setAttribute("role", "img");
  figure.setAttribute("aria-label", label);
  figure.style.margin = "0";
  host.append(figure);
  const made = new uPlot({ // eslint-disable-line no-undef
    width: Math.max(220, host.clientWidth), height: HEIGHT, legend: { show: false }, cursor: { show: false },
    ...options,
  }, data, figure);
  plots.set(host, [...(plots.get(host) || []), made]);
}

const cut = (label, length) => (label.length > length ? `${label.slice(0, length - 1)}…` : label);

function faded(colour, share) {
  return `color-mix(in srgb, ${colour} ${Math.round(100 * share)}%, transparent)`;
}

// One belief before and after, and pinned ones: `lines` have x, density, atoms, masses, interval.
export function belief(host, picture, pinned) {
  if (picture.categories) return categories(host, picture);
  const colours = [css("--before"), css("--after"), ...pinned.map(() => css("--pinned"))];
  const lines = [...picture.lines, ...pinned];
  const dense = lines.some((line) => line.x.length > 0);
  const tables = lines.map((line) => (line.x.length ? [line.x, line.density] : [[picture.low, picture.high], [null, null]]));
  const data = uPlot.join(tables); // eslint-disable-line no-undef
  const top = Math.max(...lines.flatMap((line) => line.masses), 0);
  const drawn = (u) => {
    const { ctx, bbox } = u;
    ctx.save();
    lines.forEach((line, place) => {
      ctx.fillStyle = colours[place];
      ctx.strokeStyle = colours[place];
      const width = Math.max(2, bbox.width / (8 * Math.max(8, line.atoms.length)));
      line.atoms.forEach((at, i) => {
        const left = u.valToPos(at, "x", true) + (place - lines.length / 2) * width;
        const height = (line.masses[i] / top) * bbox.height * 0.94;
        ctx.fillRect(left, bbox.top + bbox.height - height, width, height);
      });
      const ends = line.interval.map((end) => u.valToPos(Math.min(Math.max(end, picture.low), picture.high), "x", true));
      ctx.fillRect(ends[0], bbox.top + 3 + place * 7, Math.max(3, ends[1] - ends[0]), 4);
    });
    ctx.restore();
  };
  const series = lines.map((line, place) => ({
    stroke: colours[place], width: 2, spanGaps: true, points: { show: false },
    dash: line.exact ? [] : [6, 4], fill: place < 2 ? faded(colours[place], 0.14) : undefined,
  }));
  const said = picture.lines.map((line, place) => `${place ? "after" : "before"}: 90 % credible interval ${line.interval.map((end) => end.toPrecision(4)).join(" to ")}`);
  chart(host, `Belief about ${picture.name}. ${said.join("; ")}`, {
    scales: { x: { time: false, range: [picture.low, picture.high] }, y: { range: (u, low, high) => [0, dense && high ? high * 1.15 : 1] } },
    axes: axes(picture.name, dense ? "density" : "probability"), series: [{}, ...series], hooks: { draw: [drawn] },
  }, data);
}

function categories(host, picture) {
  const box = element("div", "", "bars");
  for (const one of picture.categories) {
    one.shares.forEach((share, place) => row(box, place ? "" : one.value, share, place ? "after" : "before"));
  }
  host.append(element("p", picture.name), box);
  if (picture.more) host.append(element("p", `and ${picture.more} less likely values`, "how"));
}

// A bar for a probability, with its interval unless it is exact.
export function row(box, name, share, kind) {
  const track = element("div", "", "track");
  const fill = element("div", "", `fill ${kind}`);
  fill.style.width = `${100 * share.value}%`;
  track.append(fill);
  if (!share.exact) {
    const whisker = element("div", "", "whisker");
    whisker.style.left = `${100 * share.low}%`;
    whisker.style.width = `${100 * (share.high - share.low)}%`;
    track.append(whisker);
  }
  box.append(element("span", name, "name"), track, element("span", share.text));
}

// The heat map: outputs across, secrets up; beside it the posterior after the output under the cursor.
export function joint(host, found, column) {
  const canvas = element("canvas");
  const width = Math.max(220, host.clientWidth);
  const ratio = window.devicePixelRatio || 1;
  const [left, right, bottom, top] = [54, 84, 22, 6];
  canvas.width = width * ratio;
  canvas.height = HEIGHT * ratio;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `How likely ${found.secret} and ${found.output} are together; beside it the belief after the output under the cursor`);
  host.replaceChildren(canvas);
  const ctx = canvas.getContext("2d");
  ctx.scale(ratio, ratio);
  ctx.font = "11px system-ui, sans-serif";
  const [rows, columns] = [found.shares.length, found.shares[0].length];
  const cell = { width: (width - left - right) / columns, height: (HEIGHT - top - bottom) / rows };
  const most = Math.max(...found.shares.flat());
  const place = (i) => HEIGHT - bottom - (i + 1) * cell.height;
  found.shares.forEach((line, i) => line.forEach((share, j) => {
    if (!share) return;
    ctx.fillStyle = faded(css("--before"), Math.sqrt(share / most));
    ctx.fillRect(left + j * cell.width, place(i), cell.width + 0.5, cell.height + 0.5);
  }));
  ctx.strokeStyle = css("--after");
  ctx.lineWidth = 2;
  ctx.strokeRect(left + column * cell.width, top, cell.width, HEIGHT - top - bottom);
  const total = found.shares.reduce((sum, line) => sum + line[column], 0);
  ctx.fillStyle = css("--after");
  const posterior = found.shares.map((line) => (total ? line[column] / total : 0));
  const highest = Math.max(...posterior) || 1;
  posterior.forEach((share, i) => ctx.fillRect(width - right + 6, place(i) + 1, (right - 12) * share / highest, Math.max(1, cell.height - 1)));
  ctx.fillStyle = css("--soft");
  const step = (count, room) => Math.max(1, Math.ceil(count / room));
  found.secrets.labels.forEach((label, i) => { if (i % step(rows, 9) === 0) ctx.fillText(cut(label, 8), 2, place(i) + cell.height / 2 + 4); });
  found.outputs.labels.forEach((label, j) => { if (j % step(columns, Math.max(1, Math.floor((width - left - right) / 72))) === 0) ctx.fillText(cut(label, 11), left + j * cell.width, HEIGHT - 6); });
  return { total, posterior, at: (x) => Math.min(columns - 1, Math.max(0, Math.floor((x - left) / cell.width))) };
}

function stroke(u, from, to) {
  u.ctx.beginPath();
  u.ctx.moveTo(u.valToPos(from[0], "x", true), u.valToPos(from[1], "y", true));
  u.ctx.lineTo(u.valToPos(to[0], "x", true), u.valToPos(to[1], "y", true));
  u.ctx.stroke();
}

// Mutual information over expected error, the present value marked.
export function tradeoff(host, found) {
  clear(host);
  const points = [...found.points].sort((a, b) => a.error.value - b.error.value);
  const most = points.at(-1).error.value;
  const least = most / DECADES;
  const across = (error) => (most > 0 ? Math.max(error, least) : error); // on a log scale there is no zero
  const now = points.findIndex((point) => point.parameter === found.at);
  const mark = (u) => {
    u.ctx.strokeStyle = css("--before");
    for (const { leak, error } of points) { // intervals of what is not exact
      if (!leak.exact) stroke(u, [across(error.value), leak.low], [across(error.value), leak.high]);
      if (!error.exact) stroke(u, [across(error.low), leak.value], [across(error.high), leak.value]);
    }
    if (now < 0) return;
    u.ctx.fillStyle = css("--after");
    u.ctx.beginPath();
    u.ctx.arc(u.valToPos(across(points[now].error.value), "x", true), u.valToPos(points[now].leak.value, "y", true), 6 * devicePixelRatio, 0, 7);
    u.ctx.fill();
  };
  const told = now < 0 ? "" : `now: error ${points[now].error.text}, leak ${points[now].leak.text}`;
  chart(host, `Mutual information over expected error. ${told}`, {
    scales: {
      x: most > 0
        ? { time: false, distr: 3, range: (u, low, high) => [low / 1.4, high * 1.4] }
        : { time: false, range: (u, low, high) => [low - 1, high + 1] },
      y: { range: (u, low, high) => [0, high > 0 ? high * 1.1 : 1] },
    },
    axes: axes("expected error", "mutual information, bit"), hooks: { draw: [mark] },
    series: [{}, { stroke: css("--before"), width: 2, points: { show: true, size: 6 } }],
  }, [points.map((p) => across(p.error.value)), points.map((p) => p.leak.value)]);
  return told;
}
