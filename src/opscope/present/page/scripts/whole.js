// Under the headline: where the time of all custom operators went.
const {data, el, ns, percent} = opscope;
const {INSIDE, BESIDE, bar, swatch} = opscope.parts;

const entry = (part, word, about, value, share) => {
  const item = el("li", value === null ? "unmeasured" : "", swatch(part));
  item.append(el("span", "word", word), el("b", "num", ns(value)));
  if (share) item.append(el("span", "num soft", share));
  item.dataset.tip = word + "\n" + about + (value === null ? "\nnot measured" : "");
  return item;
};

opscope.whole = {
  mount(place) {
    const sums = data("whole-data");
    const wall = sums.wall_ns;
    const figure = el("figure", "whole-figure");
    figure.append(
      el("figcaption", "", "Where the time of all custom operators went"),
      bar((key) => sums[key], 0, "large"),
    );
    const legend = el("ul", "legend");
    for (const [key, part, word, about] of INSIDE) {
      const value = sums[key];
      // What not every host has is named only where it is; the rest also where it is not measured.
      if (!value && !["python_ns", "sub_ns", "wait_ns"].includes(key)) continue;
      legend.append(entry(part, word, about, value, value === null ? "" : percent(value, wall)));
    }
    const beside = el("ul", "legend beside");
    for (const [key, part, word, about] of BESIDE.slice(0, 2)) {
      if (key !== "elsewhere_ns" && !sums[key]) continue;
      beside.append(entry(part, word, about, sums[key], ""));
    }
    beside.prepend(el("li", "soft", "beside it:"));
    figure.append(legend, beside);
    place.append(figure);
  },
};
