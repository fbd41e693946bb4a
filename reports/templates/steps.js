// Steps through weights, output by output; without it the page shows still figures.
// All words go in as text, never as markup. A link such as report.html#step=steps-1:2:1:4 opens
// the second variant's first example at its fourth output.
(() => {
  "use strict";

  const MARK = "213, 94, 0";
  const shade = (weight) => Math.sqrt(Math.max(0, weight) / 1000);

  function make(tag, text = "", type = "") {
    const element = document.createElement(tag);
    element.textContent = text;
    if (type) element.className = type;
    return element;
  }

  function choice(label, names) {
    const around = make("label", `${label} `);
    const select = document.createElement("select");
    names.forEach((name, at) => select.append(new Option(name, at)));
    around.append(select);
    return [around, select];
  }

  function button(text, label) {
    const element = make("button", text);
    element.type = "button";
    element.setAttribute("aria-label", label);
    return element;
  }

  function bitmap(picture) {
    const canvas = document.createElement("canvas");
    canvas.width = picture.columns;
    canvas.height = picture.rows;
    const context = canvas.getContext("2d");
    const image = context.createImageData(picture.columns, picture.rows);
    [...atob(picture.gray)].forEach((pixel, at) => {
      image.data.set([pixel.charCodeAt(0), pixel.charCodeAt(0), pixel.charCodeAt(0), 255], 4 * at);
    });
    context.putImageData(image, 0, 0);
    return canvas;
  }

  // Gray pixels, places shaded by weight, a frame around the heaviest and the gold ones.
  function paint(picture, run, step) {
    const [rows, columns] = run.grid;
    const sound = rows === 1;
    const canvas = make("canvas");
    const scale = 336 / Math.max(picture.rows, picture.columns);
    canvas.width = sound ? 720 : Math.round(scale * picture.columns);
    canvas.height = sound ? 150 : Math.round(scale * picture.rows);
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(bitmap(picture), 0, 0, canvas.width, canvas.height);
    const weights = run.weights[step];
    const [width, height] = [canvas.width / columns, canvas.height / rows];
    const best = weights.indexOf(Math.max(...weights));
    weights.forEach((weight, at) => {
      const corner = [(at % columns) * width, Math.floor(at / columns) * height];
      context.fillStyle = `rgba(${MARK}, ${(0.75 * shade(weight)).toFixed(3)})`;
      context.fillRect(...corner, width, height);
      const gold = run.gold && run.gold[step].includes(at);
      if (!gold && (at !== best || weights[best] * weights.length < 1500)) return;
      context.strokeStyle = `rgb(${MARK})`;
      context.lineWidth = 2;
      context.setLineDash(gold ? [5, 3] : []);
      context.strokeRect(corner[0] + 1, corner[1] + 1, width - 2, height - 2);
    });
    canvas.setAttribute("role", "img");
    return canvas;
  }

  function words(source, run, step) {
    const around = make("p", "", "source");
    source.forEach((word, at) => {
      const weight = run.weights[step][at] ?? 0;
      const one = make("span", word || "\u00a0", run.gold?.[step].includes(at) ? "gold" : "");
      one.style.backgroundColor = `rgba(${MARK}, ${(0.8 * shade(weight)).toFixed(3)})`;
      one.title = (weight / 1000).toFixed(3);
      if (run.begins.includes(at)) around.append(make("br"));
      around.append(one, " ");
    });
    return around;
  }

  function heaviest(source, run, step) {
    const order = run.weights[step].map((weight, at) => [weight, at]).sort((a, b) => b[0] - a[0]);
    return order.slice(0, 3).filter(([weight]) => weight > 4).map(([weight, at]) => {
      const columns = run.grid?.[1];
      const place = !run.grid ? source[at] ?? `place ${at + 1}`
        : run.grid[0] === 1 ? `place ${at + 1}`
        : `row ${Math.floor(at / columns) + 1}, column ${(at % columns) + 1}`;
      return `${place} (${(weight / 1000).toFixed(2)})`;
    }).join(", ");
  }

  function prepare(root) {
    const data = JSON.parse(document.getElementById(`${root.id}-data`).textContent);
    const [variantLabel, variant] = choice("Variant", data.variants);
    const [exampleLabel, example] = choice("Example", data.examples.map((one) => one.title));
    const [back, next] = [button("\u2190", "Previous output"), button("\u2192", "Next output")];
    const slider = document.createElement("input");
    slider.type = "range";
    slider.min = 0;
    slider.setAttribute("aria-label", "Output step");
    const where = make("output");
    const stage = make("div", "", "stage");
    stage.tabIndex = 0;
    stage.setAttribute("role", "group");
    stage.setAttribute("aria-label", "Source, shaded by weight; arrow keys step");
    const said = make("p", "", "said");
    const told = make("p", "", "told");
    told.setAttribute("aria-live", "polite");
    const reference = make("p", "", "told");
    const tools = make("div", "", "walk");
    const along = make("span", "", "along");
    along.append(back, slider, next, where);
    tools.append(variantLabel, exampleLabel, along);
    root.append(tools, stage, said, told, reference);

    function show(step) {
      const held = document.activeElement;
      const one = data.examples[example.value];
      const run = one.runs[variant.value];
      stage.replaceChildren();
      said.replaceChildren();
      reference.textContent = one.reference ? `Reference: ${one.reference}` : "";
      if (!run) {
        told.textContent = "This variant left no weights for this example.";
        where.textContent = "";
        for (const control of [slider, back, next]) control.disabled = true;
        return;
      }
      const last = run.weights.length - 1;
      const at = Math.min(Math.max(step, 0), last);
      slider.max = last;
      slider.value = at;
      slider.setAttribute("aria-valuetext", `${at + 1} of ${last + 1}: ${run.said[at] ?? ""}`);
      slider.disabled = last === 0;
      back.disabled = at === 0;
      next.disabled = at === last;
      // a button that is switched off would take the keyboard's place in the page with it
      if (back.disabled && held === back || next.disabled && held === next) stage.focus();
      where.textContent = `${at + 1} of ${last + 1}`;
      const source = data.sources[run.source];
      const drawn = run.grid && one.picture ? paint(one.picture, run, at) : words(source, run, at);
      stage.append(drawn);
      run.said.forEach((word, place) => {
        const element = make("span", word || "\u00a0", place > at ? "later" : "");
        if (place === at) element.setAttribute("aria-current", "step");
        element.addEventListener("click", () => show(place));
        said.append(element, " ");
      });
      const text = `Says \u201c${run.said[at] ?? ""}\u201d, looks most at ${heaviest(source, run, at)}.`;
      told.textContent = text;
      if (drawn.tagName === "CANVAS") drawn.setAttribute("aria-label", text);
    }

    const now = () => Number(slider.value);
    variant.addEventListener("change", () => show(now()));
    example.addEventListener("change", () => show(0));
    slider.addEventListener("input", () => show(now()));
    back.addEventListener("click", () => show(now() - 1));
    next.addEventListener("click", () => show(now() + 1));
    root.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
      const changed = event.altKey || event.ctrlKey || event.metaKey || event.shiftKey;
      if (!move || changed || ["SELECT", "INPUT"].includes(event.target.tagName)) return;
      event.preventDefault();
      show(now() + move);
    });
    root.hidden = false;
    const still = root.parentElement.querySelector(`[data-still="${root.id}"]`);
    if (still) still.open = false;
    function follow() {
      const asked = location.hash.match(/^#step=([\w-]+):(\d+):(\d+):(\d+)$/);
      if (asked?.[1] !== root.id) return false;
      const places = asked.slice(2).map((place) => Number(place) - 1);
      if (!data.variants[places[0]] || !data.examples[places[1]]) return false;
      [variant.value, example.value] = places;
      show(places[2]);
      for (let at = root; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
      root.scrollIntoView({ block: "nearest" });
      return true;
    }
    addEventListener("hashchange", follow);
    if (!follow()) show(0);
  }

  document.querySelectorAll(".steps").forEach(prepare);
})();
