// The graph of a workflow, to read and not to edit. Every node can be focused; arrows go to the nearest in their direction.
import { svg } from "../../lib/dom.js";
import { excerpt } from "../../lib/format.js";
import { kindOf, PICTURES, WORDS } from "./kinds.js";
import { layout, SIZE } from "./layout.js";

/** @typedef {import("./layout.js").Placed} Placed */
/** @typedef {import("./layout.js").Routed} Routed */
/** @typedef {import("./layout.js").GraphEdge} GraphEdge */

const LEAST_SCALE = 0.82;
const CORNER = 8;
const NAME_CHARS = 20;

/**
 * @param {import("../../types.js").WorkflowDefinition} definition
 * @param {() => string | null} chosen the node that is looked at; followed
 * @param {(id: string) => void} choose
 */
export function graphView({ name, nodes, edges }, chosen, choose) {
  const drawn = layout(nodes, edges);
  const picture = svg("svg", {
    class: "graph", viewBox: `0 0 ${drawn.width} ${drawn.height}`, role: "group", "aria-label": `Graph of ${name}`,
    style: { width: `${drawn.width}px`, "min-width": `${Math.round(drawn.width * LEAST_SCALE)}px` },
  },
  svg("defs", null, arrow("arrow", "g-arrow"), arrow("arrow-back", "g-arrow back")),
  drawn.edges.map((one) => edgeView(one)),
  drawn.edges.map((one) => label(one)),
  rules(drawn.edges));
  const views = new Map(drawn.nodes.map((placed) => [placed.node.id, nodeView(placed, edges, chosen, choose)]));
  picture.append(...views.values());
  picture.addEventListener("keydown", (event) => {
    const from = drawn.nodes.find((one) => views.get(one.node.id) === document.activeElement);
    const to = from && nearest(from, drawn.nodes, event.key);
    if (!to) return;
    event.preventDefault();
    event.stopPropagation();
    views.get(to.node.id)?.focus();
    choose(to.node.id);
  });
  return picture;
}

/** @param {string} id @param {string} name */
function arrow(id, name) {
  return svg("marker", { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" }, svg("path", { d: "M0 .8 7.200 4 0 7.200Z", class: name }));
}

/** @param {Placed} placed @param {GraphEdge[]} edges @param {() => string | null} chosen @param {(id: string) => void} choose */
function nodeView({ node, x, y }, edges, chosen, choose) {
  const kind = kindOf(node.typeId);
  const out = edges.filter((edge) => edge.sourceNodeId === node.id);
  const to = out.map((edge) => `${edge.targetNodeId}${edge.sourceOutput ? ` through ${edge.sourceOutput}` : ""}`).join(", ");
  const select = () => choose(node.id);
  const [name, type] = [excerpt(node.name ?? node.id, NAME_CHARS), excerpt(node.typeId.replace(/^core\.(orchestrator\.)?|^vendor\.(baton\.)?/, ""), 22)];
  return svg("g", {
    class: () => ["g-node", `is-${kind}`, chosen() === node.id && "chosen", node.disabled && "disabled"],
    transform: `translate(${x} ${y})`, tabindex: "0", role: "button", "aria-pressed": () => String(chosen() === node.id),
    // Begins with what is written in it: whoever speaks to the page says what is to be seen.
    "aria-label": `${name} ${type}, node ${node.id}, ${WORDS[kind]}${node.disabled ? ", disabled" : ""}. ${to ? `Goes to ${to}` : "Nothing follows"}`,
    onClick: select,
    onKeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.stopPropagation();
      select();
    },
  },
  svg("rect", { width: SIZE.width, height: SIZE.height, rx: kind === "flow" ? SIZE.height / 2 : 7 }),
  svg("g", { class: "g-picture", transform: `translate(12 ${SIZE.height / 2 - 8})` }, svg("path", { d: PICTURES[kind] })),
  svg("text", { class: "g-name", x: 38, y: 20 }, name), " ",
  svg("text", { class: "g-type", x: 38, y: 35 }, type));
}

/** @param {Routed} routed */
function edgeView({ edge, back, points }) {
  const failure = edge.triggerRule === "any_failed" || edge.triggerRule === "all_complete";
  return svg("path", { class: ["g-edge", back && "back", failure && "failure"], d: back ? wayBack(points) : wayOn(points), "marker-end": `url(#${back ? "arrow-back" : "arrow"})`, "aria-hidden": "true" });
}

/** Soft bends from place to place. @param {{ x: number, y: number }[]} points */
function wayOn([first = { x: 0, y: 0 }, ...rest]) {
  let [d, at] = [`M${first.x} ${first.y}`, first];
  for (const to of rest) {
    const bend = (to.y - at.y) / 2;
    d += at.x === to.x ? `L${to.x} ${to.y}` : `C${at.x} ${at.y + bend} ${to.x} ${to.y - bend} ${to.x} ${to.y}`;
    at = to;
  }
  return d;
}

/** Straight lines with round corners. @param {{ x: number, y: number }[]} points */
function wayBack([first = { x: 0, y: 0 }, ...rest]) {
  let d = `M${first.x} ${first.y}`;
  let before = first;
  for (const [index, corner] of rest.entries()) {
    const after = rest[index + 1];
    if (!after) return `${d}L${corner.x} ${corner.y}`;
    const near = (/** @type {{ x: number, y: number }} */ other) => {
      const far = Math.hypot(other.x - corner.x, other.y - corner.y);
      const share = Math.min(CORNER, far / 2) / (far || 1);
      return `${corner.x + (other.x - corner.x) * share} ${corner.y + (other.y - corner.y) * share}`;
    };
    d += `L${near(before)}Q${corner.x} ${corner.y} ${near(after)}`;
    before = corner;
  }
  return d;
}

/** The port it leaves through and the condition. @param {Routed} routed */
function label({ edge, back, points }) {
  const [first, second] = [points[0], points[1]];
  if (!first || !second) return null;
  const text = [edge.sourceOutput, edge.condition && `if ${conditionText(edge.condition)}`].filter(Boolean).join(" ");
  // On the bend, past its middle: there the ways out of one node have parted already.
  const at = back ? { x: first.x + 6, y: first.y + 12 } : { x: first.x + (second.x - first.x) * 0.648, y: first.y + (second.y - first.y) * 0.576 + 3 };
  return text && svg("text", { class: "g-label", x: at.x, y: at.y, "text-anchor": back ? "start" : "middle" }, svg("title", null, text), excerpt(text, 24));
}

/** What a node needs of its sources, where that is not "all succeeded": once for each node and rule. @param {Routed[]} all */
function rules(all) {
  /** @type {Map<string, SVGElement>} */
  const drawn = new Map();
  for (const { edge, points } of all) {
    const end = points.at(-1);
    if (!end || !edge.triggerRule || edge.triggerRule === "all_success") continue;
    const place = `${edge.targetNodeId} ${edge.triggerRule}`;
    if (!drawn.has(place)) drawn.set(place, svg("text", { class: "g-label rule", x: end.x + 9, y: end.y - 7 }, edge.triggerRule.replaceAll("_", " ")));
  }
  return [...drawn.values()];
}

/** @param {any} condition */
export function conditionText(condition) {
  if (condition.type === "expression") return condition.expression;
  const words = /** @type {Record<string, string>} */ ({ equals: "=", notEquals: "≠", contains: "contains", regex: "matches", truthy: "counts", falsy: "does not count" });
  return [condition.left, words[condition.type] ?? condition.type, condition.right === undefined ? "" : JSON.stringify(condition.right)].filter(Boolean).join(" ");
}

/** @param {Placed} from @param {Placed[]} all @param {string} key */
function nearest(from, all, key) {
  const step = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0] }[key];
  if (!step) return undefined;
  const [dx = 0, dy = 0] = step;
  const far = (/** @type {Placed} */ to) => Math.abs(to.x - from.x) + Math.abs(to.y - from.y);
  return all.filter((to) => to !== from && (dy !== 0 ? Math.sign(to.layer - from.layer) === dy : to.layer === from.layer && Math.sign(to.x - from.x) === dx))
    .sort((a, b) => (dy !== 0 ? Math.abs(a.layer - from.layer) - Math.abs(b.layer - from.layer) : 0) || far(a) - far(b))[0];
}
