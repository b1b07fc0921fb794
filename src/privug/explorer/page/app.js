// The page: its state is an attack, a position for each attack, and pinned settings; the address holds all of it.

import { belief, clear, element, joint, row, tradeoff } from "./charts.js";

const $ = (id) => document.getElementById(id);
const STEPS = 1000;
const GROUPS = [
  ["declared", "Declared in the file"], ["seen", "What the attacker sees"], ["mechanism", "Protection"],
  ["program", "The program"], ["prior", "What the attacker knows"],
];
let attacks = {};
let state = { attack: "", positions: {}, pins: [] };
let past = [];
let gesture = false;
let view = {};
let column = 0;
let tab = "";
let latest = 0;
let waiting = null; // a request that is to be sent
let sent = null; // when the last one was sent, as long as nothing has come back
let moves = 0;
const PATIENCE = 250; // milliseconds that a run has, while a slider is dragged, before a newer one ends it
const CARDS = { "beliefs-card": "answer", "questions-card": "answer", "joint-card": "leakage", "leakage-card": "leakage", "policies-card": "policies", "tradeoff-card": "tradeoff" };

const copied = (value) => JSON.parse(JSON.stringify(value));
const position = () => (state.positions[state.attack] ||= {});
const shown = (value) => String(Number(Number(value).toPrecision(6)));
const withUnit = (one, value) => (one.unit ? `${shown(value)} ${one.unit}` : shown(value));
const took = (seconds) => `${(1000 * seconds).toFixed(0)} ms`;

// ---- the address ------------------------------------------------------------------------------------------------
function remember() {
  const plain = { ...state, pins: state.pins.map(({ name, attack, position: at }) => ({ name, attack, position: at })) };
  history.replaceState(null, "", `#${encodeURIComponent(JSON.stringify(plain))}`);
}

function recalled() {
  try {
    const read = JSON.parse(decodeURIComponent(location.hash.slice(1)));
    const numbers = (at) => Object.fromEntries(Object.entries(at || {}).filter(([, value]) => Number.isFinite(value)));
    const known = (name) => typeof name === "string" && Object.hasOwn(attacks, name);
    return {
      attack: known(read.attack) ? read.attack : state.attack,
      positions: Object.fromEntries(Object.entries(read.positions || {}).filter(([name]) => known(name)).map(([name, at]) => [name, numbers(at)])),
      pins: (read.pins || []).filter((pin) => known(pin.attack)).map((pin) => ({ name: String(pin.name), attack: pin.attack, position: numbers(pin.position) })),
    };
  } catch {
    return state;
  }
}

// ---- controls ---------------------------------------------------------------------------------------------------
function toSlider(one, value) {
  const share = one.scale === "log" ? Math.log(value / one.low) / Math.log(one.high / one.low) : (value - one.low) / (one.high - one.low);
  return Math.round(STEPS * Math.min(1, Math.max(0, share)));
}

function fromSlider(one, place) {
  const share = place / STEPS;
  const value = one.scale === "log" ? one.low * (one.high / one.low) ** share : one.low + share * (one.high - one.low);
  return one.integer ? Math.round(value) : Number(value.toPrecision(6));
}

function control(one, number) {
  const box = element("div", "", "control");
  const label = element("label", one.unit ? `${one.name} (${one.unit})` : one.name);
  const slider = element("input");
  const field = element("input");
  const value = position()[one.name] ?? one.value;
  Object.assign(slider, { type: "range", id: `slider-${number}`, min: 0, max: STEPS, step: 1, value: toSlider(one, value) });
  Object.assign(field, { type: "number", id: `number-${number}`, step: one.integer ? 1 : "any", value: shown(value) });
  label.htmlFor = slider.id;
  slider.setAttribute("aria-valuetext", withUnit(one, value));
  field.setAttribute("aria-label", `${one.name}, as a number`);
  box.dataset.parameter = one.name;
  const move = (next) => {
    if (!Number.isFinite(next)) return;
    keep();
    position()[one.name] = next;
    slider.setAttribute("aria-valuetext", withUnit(one, next));
    remember();
    ask();
  };
  slider.addEventListener("input", () => { const next = fromSlider(one, Number(slider.value)); field.value = shown(next); move(next); });
  slider.addEventListener("change", () => { gesture = false; });
  field.addEventListener("change", () => {
    if (field.value.trim() === "") { field.value = shown(position()[one.name] ?? one.value); return; } // nothing was written
    const next = Number(field.value); slider.value = toSlider(one, next); gesture = false; move(next); gesture = false;
  });
  box.append(label, slider, field);
  return box;
}

function drawControls() {
  const form = $("controls");
  const opened = new Set([...form.querySelectorAll("details[open]")].map((one) => one.dataset.group));
  const first = !form.children.length;
  form.replaceChildren();
  const own = attacks[state.attack].parameters;
  let number = 0;
  for (const [group, title] of GROUPS) {
    const members = own.filter((one) => one.group === group);
    if (!members.length) continue;
    const box = element("details");
    box.dataset.group = group;
    box.open = first ? group !== "prior" || members.length <= 6 : opened.has(group);
    box.append(element("summary", title), ...members.map((one) => control(one, number++)));
    form.append(box);
  }
  const titles = Object.values(attacks).map((one) => one.title);
  $("attack").replaceChildren(...Object.entries(attacks).map(([name, one]) => {
    const option = element("option", titles.filter((title) => title === one.title).length > 1 ? `${name}: ${one.title}` : one.title);
    option.value = name;
    option.selected = name === state.attack;
    return option;
  }));
}

// ---- undo -------------------------------------------------------------------------------------------------------
function keep() {
  if (gesture) return;
  gesture = true;
  past.push(copied({ ...state, pins: [] }));
  if (past.length > 200) past.shift();
  $("undo").disabled = false;
}

function undo() {
  const before = past.pop();
  if (!before) return;
  state = { ...before, pins: state.pins };
  gesture = false;
  $("undo").disabled = past.length === 0;
  remember();
  drawControls();
  ask();
}

// ---- asking -----------------------------------------------------------------------------------------------------
async function post(what, body) {
  const response = await fetch(what, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  return response.json();
}

function now() {
  return { attack: state.attack, position: position() };
}

function ask() {
  document.body.dataset.state = "running";
  moves += 1;
  if (waiting === null) waiting = setTimeout(send, sent === null ? 0 : Math.max(0, sent + PATIENCE - performance.now()));
}

async function send() {
  clearTimeout(waiting);
  waiting = null;
  if (!tab) return;
  sent = performance.now();
  $("cancel").hidden = false;
  try {
    await post(`run?tab=${tab}`, { ...now(), move: moves });
  } catch {
    lost();
  }
}

function heard(message) {
  if (message.run < latest) return;
  latest = message.run;
  const { run, ...parts } = message;
  if (parts.asked) view = { run, joint: view.joint, leakage: view.leakage, fresh: new Set() };
  Object.keys(parts).forEach((part) => view.fresh?.add(part));
  Object.assign(view, parts);
  if (parts.parameters) follow(parts.parameters);
  if (parts.answer || parts.error) {
    delete view.rough;
    sent = null;
    if (waiting !== null) send();
  }
  draw(parts);
  if (parts.done && view.asked?.move === moves) {
    document.body.dataset.state = "done";
    $("cancel").hidden = true;
  }
}

// What the file declares may change what else is found: numbers that nobody has moved follow.
function follow(parameters) {
  const { attack } = view.asked;
  const same = parameters.map((one) => one.name).join("\n") === attacks[attack].parameters.map((one) => one.name).join("\n");
  attacks[attack].parameters.forEach((one, place) => { if (same) one.value = parameters[place].value; });
  if (!same) attacks[attack].parameters = parameters;
  if (attack !== state.attack) return;
  if (!same) { drawControls(); return; }
  for (const box of $("controls").querySelectorAll(".control")) {
    const one = parameters.find((other) => other.name === box.dataset.parameter);
    if (one.name in position()) continue;
    const [slider, field] = box.querySelectorAll("input");
    slider.value = toSlider(attacks[attack].parameters.find((other) => other.name === one.name), one.value);
    field.value = shown(one.value);
    slider.setAttribute("aria-valuetext", withUnit(one, one.value));
  }
}

function connect() {
  const name = crypto.randomUUID();
  const events = new EventSource(`events?tab=${name}`);
  events.addEventListener("open", (event) => {
    if (event.data === undefined) return; // the connection itself; the server's own event follows
    tab = name;
    latest = 0;
    sent = null;
    complain("");
    ask();
    answerPins();
  });
  events.onmessage = (event) => heard(JSON.parse(event.data));
  events.onerror = () => { events.close(); tab = ""; lost(); setTimeout(connect, 1000); };
}

function lost() {
  complain("The explorer's server does not answer. What is shown stays; the page goes on when the server is back.");
}

function complain(text) {
  $("banner").textContent = text;
  $("banner").hidden = !text;
}

// ---- drawing ----------------------------------------------------------------------------------------------------
function draw(parts) {
  for (const [card, part] of Object.entries(CARDS)) $(card).classList.toggle("stale", Boolean(view.done && !view.fresh?.has(part))); // of other settings
  if (parts.error && parts.error !== "cancelled") complain(parts.error);
  else if (parts.answer || parts.rough) complain("");
  if (parts.error === "cancelled") $("status").textContent = "Cancelled.";
  else if (parts.error && !view.answer) { $("sentences").replaceChildren(); $("notes").replaceChildren(); $("status").textContent = "No answer at these settings."; }
  if (parts.answer || parts.rough) drawAnswer(parts.answer || parts.rough, Boolean(parts.rough));
  if (parts.leakage) drawLeakage();
  if (parts.policies) drawPolicies();
  if (parts.tradeoff) drawTradeoff();
  if (parts.done && !parts.error && !view.tradeoff) $("tradeoff-card").hidden = true;
}

function drawAnswer(answer, rough) {
  $("sentences").dataset.drawn = `${view.run} ${rough ? "rough" : "answer"}`;
  $("sentences").replaceChildren(...answer.sentences.map((one) => element("p", one)));
  const kind = rough ? "a rough first answer" : answer.exact ? "exact" : "from samples, with intervals";
  $("status").textContent = `${answer.engine.startsWith(kind) ? "" : `${kind} · `}${answer.engine} · program ${answer.program} · ${took(answer.seconds)}`
    + (answer.evidence ? ` · P(observation) ${answer.evidence.text}` : "");
  $("status").className = rough ? "rough" : "";
  $("notes").replaceChildren(...answer.notes.map((one) => element("li", one)));
  drawBeliefs(answer);
  const box = element("div", "", "bars");
  for (const one of answer.questions) {
    box.append(element("span", one.claim, "claim"));
    row(box, "before", one.before, "before");
    if (one.after) row(box, "after", one.after, "after");
  }
  $("questions").replaceChildren(box);
  $("questions-card").hidden = !answer.questions.length;
  const head = element("tr");
  const columns = answer.changes.some((line) => line.length > 2) ? ["", "before", "after"] : ["", "before"];
  head.append(...columns.map((name) => { const cell = element(name ? "th" : "td", name); if (name) cell.scope = "col"; return cell; }));
  $("changes").tHead.replaceChildren(head);
  fill($("changes").tBodies[0], answer.changes);
  drawPins();
}

function fill(body, lines) {
  body.replaceChildren(...lines.map((line) => {
    const made = element("tr");
    line.forEach((text, place) => { const cell = element(place ? "td" : "th", text); if (!place) cell.scope = "row"; made.append(cell); });
    return made;
  }));
}

function drawBeliefs(answer) {
  const host = $("beliefs");
  clear(host);
  answer.beliefs.forEach((picture) => {
    const same = state.pins.flatMap((pin) => (pin.answer?.beliefs || []).filter((one) => one.name === picture.name && one.lines).map((one) => one.lines.at(-1)));
    belief(host, picture, picture.lines ? same : []);
  });
  $("pinned-key").hidden = !state.pins.length;
  $("interval-key").hidden = answer.beliefs.every((picture) => picture.categories);
}

function drawLeakage() {
  $("warning").textContent = view.warning || "";
  $("leakage").caption.textContent = took(view.leakage_seconds);
  fill($("leakage").tBodies[0], view.leakage.map((one) => [one.measure, one.text, one.how]));
  [...$("leakage").tBodies[0].rows].forEach((line, place) => { line.title = view.leakage[place].meaning; });
  $("cursor-label").hidden = !view.joint;
  if (!view.joint) { $("joint").replaceChildren(); $("joint-legend").textContent = view.why || ""; $("cursor-text").textContent = ""; return; }
  const columns = view.joint.outputs.labels.length;
  if (Number($("cursor").max) !== columns - 1) { $("cursor").max = columns - 1; column = Math.min(column || Math.floor(columns / 2), columns - 1); }
  drawJoint();
}

function drawJoint() {
  const found = view.joint;
  $("cursor").value = column;
  const { total, posterior, at } = joint($("joint"), found, column);
  const best = posterior.indexOf(Math.max(...posterior));
  const label = found.outputs.cells[column];
  $("joint-legend").textContent = `Across: ${found.output}. Up: ${found.secret}. On the right: the belief after the output that is marked.`;
  const told = total
    ? `Output ${label}: probability ${total.toPrecision(3)}; the likeliest ${found.secret} then is ${found.secrets.cells[best]}, with ${(100 * posterior[best]).toPrecision(3)} %${sampled(found, posterior[best], total)}.`
    : `Output ${label} ${found.exact ? "does not occur" : "was not sampled"}.`;
  $("cursor-text").textContent = told;
  $("cursor").setAttribute("aria-valuetext", told);
  const canvas = $("joint").querySelector("canvas");
  const follow = (event) => { if (event.buttons || event.type === "pointerdown") { column = at(event.offsetX); drawJoint(); } };
  canvas.addEventListener("pointerdown", follow);
  canvas.addEventListener("pointermove", follow);
}

// A share of few samples has a wide interval: Wilson's, at 95 %.
function sampled(found, share, total) {
  if (found.exact) return "";
  const n = Math.max(1, total * found.samples);
  const z = 1.96;
  const middle = (share + z * z / (2 * n)) / (1 + z * z / n);
  const half = z * Math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n);
  return `, ${(100 * Math.max(0, middle - half)).toPrecision(3)} to ${(100 * Math.min(1, middle + half)).toPrecision(3)} % (from about ${Math.round(n)} samples)`;
}

function drawPolicies() {
  $("policies-card").hidden = !view.policies.length;
  $("policies").replaceChildren(...view.policies.map((one) => {
    const item = element("li");
    item.append(element("strong", `${one.status}: `, one.status), element("span", `${one.name}: ${one.sentence}.`));
    if (one.worst) item.append(element("span", ` Worst output: ${one.worst.output} (${one.worst.text}).`));
    item.append(element("span", ` ${took(one.seconds)}`, "how"));
    return item;
  }));
}

function drawTradeoff() {
  $("tradeoff-card").hidden = false;
  const told = tradeoff($("tradeoff"), view.tradeoff);
  $("tradeoff-text").textContent = `${view.tradeoff.parameter} from ${shown(view.tradeoff.points[0].parameter)} to ${shown(view.tradeoff.points.at(-1).parameter)}${told ? `; ${told}` : ""} · ${took(view.tradeoff.seconds)}`;
}

// ---- pins -------------------------------------------------------------------------------------------------------
async function pin() {
  const names = new Set(state.pins.map((one) => one.name));
  let number = state.pins.length + 1;
  while (names.has(`setting ${number}`)) number += 1;
  state.pins.push({ name: `setting ${number}`, attack: state.attack, position: copied(position()), answer: document.body.dataset.state === "done" ? view.answer : undefined });
  remember();
  drawPins();
  await answerPins();
}

async function answerPins() {
  for (const one of state.pins) {
    if (!one.answer) {
      try {
        const found = await post("answer", { attack: one.attack, position: one.position });
        one.answer = found.answer;
        one.error = found.error;
      } catch { lost(); return; }
    }
  }
  if (view.answer) drawAnswer(view.answer, false);
  else drawPins();
}

function drawPins() {
  $("pins-card").hidden = !state.pins.length;
  const held = [...state.pins, { name: "now", ...(view.asked || now()), answer: view.answer }];
  const head = element("tr");
  head.append(element("td", ""), ...held.map((one, place) => {
    const cell = element("th", place < state.pins.length ? "" : one.name);
    cell.scope = "col";
    if (place < state.pins.length) {
      cell.append(nameOf(one, place));
      for (const [text, act] of [["Show", () => show(one)], ["Remove", () => unpin(one)]]) {
        const button = element("button", text);
        button.type = "button";
        button.setAttribute("aria-label", `${text} ${one.name}`);
        button.addEventListener("click", act);
        cell.append(" ", button);
      }
    }
    return cell;
  }));
  $("pins").tHead.replaceChildren(head);
  const last = (answer, find) => { const found = answer && find(answer); return found || "–"; };
  const claims = [...new Set(held.flatMap((one) => (one.answer?.questions || []).map((q) => q.claim)))];
  const changes = [...new Set(held.flatMap((one) => (one.answer?.changes || []).map((line) => line[0])))].slice(0, 8);
  const moved = [...new Set(held.flatMap((one) => Object.keys(one.position)))];
  const value = (one, name) => { const known = attacks[one.attack].parameters.find((p) => p.name === name); return known ? shown(one.position[name] ?? known.value) : "–"; };
  fill($("pins").tBodies[0], [
    ["attack", ...held.map((one) => attacks[one.attack].title)],
    ...moved.map((name) => [name, ...held.map((one) => value(one, name))]),
    ...claims.map((claim) => [`P(${claim})`, ...held.map((one) => last(one.answer, (a) => { const q = a.questions.find((x) => x.claim === claim); return q && (q.after || q.before).text; }))]),
    ...changes.map((name) => [name, ...held.map((one) => last(one.answer, (a) => a.changes.find((line) => line[0] === name)?.at(-1)))]),
    ["obtained", ...held.map((one) => (one.error ? one.error : last(one.answer, (a) => (a.exact ? "exact" : a.engine))))],
  ]);
}

function nameOf(one, place) {
  const field = element("input");
  Object.assign(field, { type: "text", value: one.name, maxLength: 80, id: `pin-${place}` });
  field.setAttribute("aria-label", `Name of setting ${place + 1}`);
  field.addEventListener("change", () => { one.name = field.value.trim() || one.name; remember(); drawPins(); });
  return field;
}

function show(one) {
  gesture = false;
  keep();
  gesture = false;
  state.attack = one.attack;
  state.positions[one.attack] = copied(one.position);
  remember();
  drawControls();
  ask();
}

function unpin(one) {
  state.pins = state.pins.filter((other) => other !== one);
  remember();
  if (view.answer) drawAnswer(view.answer, false);
}

// ---- taking it with you -----------------------------------------------------------------------------------------
async function copy(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    $("copied").querySelector("textarea").value = text;
    $("copied").showModal();
    $("copied").querySelector("textarea").select();
  }
  setTimeout(() => { button.textContent = before; }, 1500);
}

async function python() {
  const found = await post("script", now()).catch(() => null);
  if (!found) return lost();
  if (found.error) return complain(found.error);
  document.body.dataset.script = found.script;
  return copy(found.script, $("python"));
}

async function save() {
  $("save").disabled = true;
  try {
    const found = await post("report", now()).catch(() => null);
    if (!found) return lost();
    if (found.error) return complain(found.error);
    const link = element("a");
    link.href = URL.createObjectURL(new Blob([found.report], { type: "text/html" }));
    link.download = "report.html";
    link.click();
    URL.revokeObjectURL(link.href);
  } finally {
    $("save").disabled = false;
  }
  return undefined;
}

// ---- start ------------------------------------------------------------------------------------------------------
async function start() {
  const found = await (await fetch("state")).json();
  if (found.error) { complain(found.error); document.body.dataset.state = "done"; return; }
  attacks = found.attacks;
  $("title").textContent = `Privug explorer: ${found.title}`;
  document.title = `${found.title} · Privug explorer`;
  state.attack = Object.keys(attacks)[0];
  state = recalled();
  drawControls();
  connect();
}

$("attack").addEventListener("change", () => { gesture = false; keep(); gesture = false; state.attack = $("attack").value; view = {}; remember(); drawControls(); ask(); });
$("undo").addEventListener("click", undo);
$("reset").addEventListener("click", () => { gesture = false; keep(); gesture = false; state.positions[state.attack] = {}; remember(); drawControls(); ask(); });
$("pin").addEventListener("click", pin);
$("link").addEventListener("click", () => copy(location.href, $("link")));
$("python").addEventListener("click", python);
$("save").addEventListener("click", save);
$("cancel").addEventListener("click", () => post(`cancel?tab=${tab}`, now()).catch(lost));
$("cursor").addEventListener("input", () => { column = Number($("cursor").value); drawJoint(); });
$("controls").addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "z" && !["number", "text", "textarea"].includes(event.target.type)) { event.preventDefault(); undo(); }
});
const redraw = () => { if (view.answer) drawAnswer(view.answer, false); if (view.joint) drawJoint(); if (view.tradeoff) drawTradeoff(); };
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
window.addEventListener("hashchange", () => { gesture = false; keep(); gesture = false; state = recalled(); drawControls(); ask(); answerPins(); });
let resizing = null;
window.addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(redraw, 150); });
start().catch(lost);
