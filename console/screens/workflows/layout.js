// Where the nodes of a workflow stand: in layers from top to bottom, edges that lead back kept apart. Pure.

/** @typedef {{ id: string, name?: string, typeId: string, [more: string]: any }} GraphNode */
/** @typedef {{ id: string, sourceNodeId: string, targetNodeId: string, sourceOutput?: string, [more: string]: any }} GraphEdge */
/** @typedef {{ node: GraphNode, layer: number, x: number, y: number }} Placed the corner at the top left */
/** @typedef {{ edge: GraphEdge, back: boolean, lane: number, points: { x: number, y: number }[] }} Routed */
/** @typedef {{ nodes: Placed[], edges: Routed[], width: number, height: number }} Layout */

export const SIZE = { width: 192, height: 46, across: 26, down: 54, margin: 12, lane: 22 };

/** @typedef {{ id: string, node: GraphNode | null, layer: number, order: number, x: number, above: Slot[], below: Slot[] }} Slot a node, or where a long edge passes a layer */

/** @param {GraphNode[]} nodes @param {GraphEdge[]} edges @returns {Layout} */
export function layout(nodes, edges) {
  const known = new Set(nodes.map((node) => node.id));
  const real = edges.filter((edge) => known.has(edge.sourceNodeId) && known.has(edge.targetNodeId));
  const back = backEdges(nodes, real);
  const onward = real.filter((edge) => !back.has(edge));
  const depth = depths(nodes, onward);
  /** @type {Map<string, Slot>} */
  const slots = new Map(nodes.map((node) => [node.id, { id: node.id, node, layer: depth.get(node.id) ?? 0, order: 0, x: 0, above: [], below: [] }]));
  /** @type {Map<GraphEdge, Slot[]>} */
  const ways = new Map(onward.map((edge) => [edge, thread(edge, slots)]));
  const layers = order([...slots.values(), ...[...ways.values()].flatMap((way) => way.slice(1, -1))]);
  place(layers);
  const { width, height, across, down, margin, lane } = SIZE;
  const all = layers.flat();
  const least = Math.min(0, ...all.map((slot) => slot.x));
  // Ways back over the first layer and under the last one need room there.
  const edgeRoom = back.size > 0 ? margin + down / 2 : margin;
  const top = (/** @type {number} */ layer) => edgeRoom + layer * (height + down);
  for (const slot of all) slot.x += margin - least;
  const right = Math.max(0, ...all.map((slot) => slot.x + (slot.node ? width : 0)));
  /** @type {Routed[]} */
  const routed = [...ways].map(([edge, way]) => ({ edge, back: false, lane: 0, points: way.map((slot, index) => {
    const middle = slot.x + (slot.node ? width / 2 : 0);
    return { x: middle, y: index === 0 ? top(slot.layer) + height : index === way.length - 1 ? top(slot.layer) : top(slot.layer) + height / 2 };
  }) }));
  let used = 0;
  // The shortest way back is the innermost, so that lanes do not cross.
  const span = (/** @type {GraphEdge} */ edge) => Math.abs((depth.get(edge.sourceNodeId) ?? 0) - (depth.get(edge.targetNodeId) ?? 0));
  for (const edge of [...back].sort((a, b) => span(a) - span(b))) {
    const [from, to] = [/** @type {Slot} */ (slots.get(edge.sourceNodeId)), /** @type {Slot} */ (slots.get(edge.targetNodeId))];
    used += 1;
    routed.push({ edge, back: true, lane: used, points: wayRound(from, to, right + used * lane, used, layers, top) });
  }
  return {
    nodes: all.filter((slot) => slot.node).map((slot) => ({ node: /** @type {GraphNode} */ (slot.node), layer: slot.layer, x: slot.x, y: top(slot.layer) })),
    edges: routed,
    width: right + (used > 0 ? used * lane + across : 0) + margin,
    height: layers.length * (height + down) - down + 2 * edgeRoom,
  };
}

/**
 * Back beside everything: straight out where nothing stands to the right, else through the free space between layers.
 * @param {Slot} from @param {Slot} to @param {number} lane @param {number} count which way back it is @param {Slot[][]} layers @param {(layer: number) => number} top
 */
function wayRound(from, to, lane, count, layers, top) {
  const { width, height, down } = SIZE;
  const free = (/** @type {Slot} */ slot) => !layers[slot.layer]?.some((other) => other.node && other.order > slot.order);
  const aside = width * 0.84;
  const gap = Math.min(down / 2, 12 + count * 3);
  const own = from === to ? 10 : 4;
  const start = free(from) ? [{ x: from.x + width, y: top(from.layer) + height / 2 + own }] : [{ x: from.x + aside, y: top(from.layer) + height }, { x: from.x + aside, y: top(from.layer) + height + gap }];
  const end = free(to) ? [{ x: to.x + width, y: top(to.layer) + height / 2 - own }] : [{ x: to.x + aside, y: top(to.layer) - gap }, { x: to.x + aside, y: top(to.layer) }];
  const [out, home] = [/** @type {{ y: number }} */ (start.at(-1)), /** @type {{ y: number }} */ (end[0])];
  return [...start, { x: lane, y: out.y }, { x: lane, y: home.y }, ...end];
}

/** The edges that close a circle, seen from where runs begin. @param {GraphNode[]} nodes @param {GraphEdge[]} edges @returns {Set<GraphEdge>} */
export function backEdges(nodes, edges) {
  /** @type {Map<string, GraphEdge[]>} */
  const out = new Map();
  for (const edge of edges) out.set(edge.sourceNodeId, [...(out.get(edge.sourceNodeId) ?? []), edge]);
  const entered = new Set(edges.filter((edge) => edge.sourceNodeId !== edge.targetNodeId).map((edge) => edge.targetNodeId));
  const begins = nodes.filter((node) => !entered.has(node.id));
  /** @type {Set<GraphEdge>} */
  const back = new Set();
  /** @type {Map<string, "open" | "done">} */
  const seen = new Map();
  for (const node of [...begins, ...nodes]) {
    if (seen.has(node.id)) continue;
    // By hand rather than by recursion: a workflow may be thousands of nodes long.
    const stack = [{ id: node.id, next: 0 }];
    seen.set(node.id, "open");
    while (stack.length > 0) {
      const at = /** @type {{ id: string, next: number }} */ (stack.at(-1));
      const edge = out.get(at.id)?.[at.next];
      at.next += 1;
      if (!edge) {
        seen.set(at.id, "done");
        stack.pop();
      } else if (seen.get(edge.targetNodeId) === "open") back.add(edge);
      else if (!seen.has(edge.targetNodeId)) {
        seen.set(edge.targetNodeId, "open");
        stack.push({ id: edge.targetNodeId, next: 0 });
      }
    }
  }
  return back;
}

/** How many steps after the beginning each stands, at most. @param {GraphNode[]} nodes @param {GraphEdge[]} edges without circles */
function depths(nodes, edges) {
  const depth = new Map(nodes.map((node) => [node.id, 0]));
  const missing = new Map(nodes.map((node) => [node.id, 0]));
  /** @type {Map<string, GraphEdge[]>} */
  const out = new Map();
  for (const edge of edges) {
    missing.set(edge.targetNodeId, (missing.get(edge.targetNodeId) ?? 0) + 1);
    out.set(edge.sourceNodeId, [...(out.get(edge.sourceNodeId) ?? []), edge]);
  }
  const ready = nodes.filter((node) => missing.get(node.id) === 0).map((node) => node.id);
  for (let id = ready.shift(); id !== undefined; id = ready.shift()) {
    for (const { targetNodeId } of out.get(id) ?? []) {
      depth.set(targetNodeId, Math.max(depth.get(targetNodeId) ?? 0, (depth.get(id) ?? 0) + 1));
      const left = (missing.get(targetNodeId) ?? 0) - 1;
      missing.set(targetNodeId, left);
      if (left === 0) ready.push(targetNodeId);
    }
  }
  return depth;
}

/** The places an edge passes, one in each layer. @param {GraphEdge} edge @param {Map<string, Slot>} slots @returns {Slot[]} */
function thread(edge, slots) {
  const [from, to] = [/** @type {Slot} */ (slots.get(edge.sourceNodeId)), /** @type {Slot} */ (slots.get(edge.targetNodeId))];
  const way = [from];
  for (let layer = from.layer + 1; layer < to.layer; layer += 1) way.push({ id: `${edge.id}@${layer}`, node: null, layer, order: 0, x: 0, above: [], below: [] });
  way.push(to);
  for (const [index, slot] of way.entries()) {
    const next = way[index + 1];
    if (!next) break;
    slot.below.push(next);
    next.above.push(slot);
  }
  return way;
}

const SWEEPS = 8;

/** The layers, each in an order in which few edges cross. @param {Slot[]} all @returns {Slot[][]} */
function order(all) {
  /** @type {Slot[][]} */
  const layers = [];
  for (const slot of all) (layers[slot.layer] ??= []).push(slot);
  const number = (/** @type {Slot[]} */ layer) => layer.forEach((slot, index) => (slot.order = index));
  layers.forEach(number);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : layers.toReversed()) {
      const wish = new Map(layer.map((slot) => {
        const near = down ? slot.above : slot.below;
        return [slot, near.length === 0 ? slot.order : near.reduce((sum, one) => sum + one.order, 0) / near.length];
      }));
      layer.sort((a, b) => (wish.get(a) ?? 0) - (wish.get(b) ?? 0) || a.order - b.order);
      number(layer);
    }
  }
  return layers;
}

/** Where each stands from left to right: near its neighbours, never over another. @param {Slot[][]} layers */
function place(layers) {
  const { width, across } = SIZE;
  const wide = (/** @type {Slot} */ slot) => (slot.node ? width : 0);
  const middle = (/** @type {Slot} */ slot) => slot.x + wide(slot) / 2;
  for (const layer of layers) {
    const total = layer.reduce((sum, slot) => sum + wide(slot) + across, -across);
    let x = -total / 2;
    for (const slot of layer) {
      slot.x = x;
      x += wide(slot) + across;
    }
  }
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : layers.toReversed()) {
      const wish = layer.map((slot) => {
        const near = down ? slot.above : slot.below;
        return near.length === 0 ? slot.x : near.reduce((sum, one) => sum + middle(one), 0) / near.length - wide(slot) / 2;
      });
      spread(layer, wish, (slot) => wide(slot) + across);
    }
  }
}

/** As near to the wishes as the order allows: those that push each other move as one. @param {Slot[]} layer @param {number[]} wish @param {(slot: Slot) => number} need */
function spread(layer, wish, need) {
  /** @type {{ slots: Slot[], sum: number, wide: number, at: number }[]} */
  const blocks = [];
  for (const [index, slot] of layer.entries()) {
    let block = { slots: [slot], sum: wish[index] ?? 0, wide: need(slot), at: wish[index] ?? 0 };
    for (let before = blocks.at(-1); before && before.at + before.wide > block.at; before = blocks.at(-1)) {
      blocks.pop();
      // What the later block wishes, said from the beginning of the joint one.
      const joint = { slots: [...before.slots, ...block.slots], sum: before.sum + block.sum - block.slots.length * before.wide, wide: before.wide + block.wide, at: 0 };
      joint.at = joint.sum / joint.slots.length;
      block = joint;
    }
    blocks.push(block);
  }
  for (const block of blocks) {
    let x = block.at;
    for (const slot of block.slots) {
      slot.x = x;
      x += need(slot);
    }
  }
}
