/* The table of docs/validity-table.md: rows that have all the words that are typed. Data: measured.js. */
(() => {
  "use strict";
  const place = document.getElementById("measured"), data = window.MEASURED;
  if (!place || !data) return;
  const MOST = 200;
  const rows = data.n.map((n, i) => {
    const word = (name) => data[name].words[data[name].rows[i]];
    const row = { kind: word("kind"), name: word("name"), how: word("how"), data: word("data"), n, sets: data.sets[i] };
    const rates = [data.first[i], data.second[i], data.third[i]];
    if (row.kind === "interval") {
      rates[2] = rates[1] === null ? null : Math.max(1000 - rates[0] - rates[1], 0);
      row.name += `, ${data.level[i] / 10} %`;
    }
    row.rates = rates.map((rate) => (rate === null ? "" : (rate / 10).toFixed(1)));
    row.worse = false;
    row.text = [row.kind, row.name, row.how, row.data].join(" ").toLowerCase();
    return row;
  });
  data.worse.forEach((i) => { rows[i].worse = true; });
  const sizes = [...new Set(rows.map((row) => row.n))].filter((n) => n !== null).sort((a, b) => a - b);

  const make = (tag, text, more = {}) => Object.assign(document.createElement(tag), { textContent: text }, more);
  const labelled = (text, field) => { const label = make("label", text + " "); label.append(field); return label; };
  const words = make("input", "", { type: "search", placeholder: "KS Confidence", autocomplete: "off" });
  const size = make("select", "");
  size.append(make("option", "any", { value: "" }), ...sizes.map((n) => make("option", n.toLocaleString("en"), { value: n })));
  const worse = make("input", "", { type: "checkbox" });
  const form = make("form", "", { className: "measured-form" });
  form.append(labelled("Words", words), labelled("Observations", size), labelled("only what is worse", worse));
  const found = make("p", "", { className: "measured-found" });
  found.setAttribute("role", "status");
  const tables = make("div", "");
  place.replaceChildren(form, found, tables);

  const HEADS = {
    test: ["test", "how", "data", "n", "data sets", "at 1 %", "at 5 %", "at 10 %"],
    interval: ["interval", "how", "data", "n", "data sets", "covered", "above", "below"],
  };
  const table = (kind, own) => {
    const head = make("tr", ""), body = make("tbody", "");
    head.append(...HEADS[kind].map((name) => make("th", name, { scope: "col" })));
    for (const row of own) {
      const line = make("tr", "", { className: row.worse ? "is-worse" : "" });
      const n = row.n === null ? "" : row.n.toLocaleString("en");
      const cells = [row.name + (row.worse ? " (worse)" : ""), row.how, row.data, n, row.sets.toLocaleString("en")];
      [...cells, ...row.rates].forEach((text, k) => {
        const cell = make("td", text);
        cell.dataset.head = HEADS[kind][k];
        line.append(cell);
      });
      body.append(line);
    }
    const whole = make("table", "", { className: "table measured" }), top = make("thead", "");
    top.append(head);
    whole.append(top, body);
    return whole;
  };

  const show = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const n = size.value === "" ? null : Number(size.value);
    const own = rows.filter((row) => (n === null || row.n === n) && (!worse.checked || row.worse)
      && wanted.every((word) => row.text.includes(word)));
    const marked = own.filter((row) => row.worse).length;
    found.textContent = `${own.length.toLocaleString("en")} rows, ${marked} of them worse than they should be`
      + (own.length > MOST ? `; the first ${MOST} are shown.` : ".");
    const shown = own.slice(0, MOST), parts = [];
    for (const kind of ["test", "interval"]) {
      const part = shown.filter((row) => row.kind === kind);
      if (part.length) parts.push(table(kind, part));
    }
    tables.replaceChildren(...parts);
    try { history.replaceState(null, "", wanted.length ? `#q=${encodeURIComponent(words.value)}` : location.pathname.split("/").pop()); } catch { /* a page opened from a file in a frame */ }
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  const asked = location.hash.match(/^#q=(.*)$/);
  if (asked) words.value = decodeURIComponent(asked[1]);
  show();
})();
