// The colours of a matrix: from which value to which, and what stands for a value that is not known.

const kShades = 256;
const kScaleColours = {
  light: {
    differences: ["#1c5aa6", "#8fb7de", "#f3f2ee", "#f0a277", "#b3261e"],
    sizes: ["#eef3f8", "#86b1dc", "#123f7d"],
  },
  dark: {
    differences: ["#7db0f5", "#35557d", "#262a2e", "#96502f", "#ff9a6b"],
    sizes: ["#20262d", "#33649c", "#b8dcff"],
  },
};

// Bytes of a pixel as ImageData has them, in one number.
const pixelOf = ([red, green, blue]) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
const partsOf = colour => [1, 3, 5].map(from => Number.parseInt(colour.slice(from, from + 2), 16));

// Shades between colours that lie at equal distances.
function shadesOf(colours) {
  const parts = colours.map(partsOf);
  return Uint32Array.from({length: kShades}, (_, index) => {
    const place = (index / (kShades - 1)) * (parts.length - 1);
    const left = Math.min(Math.floor(place), parts.length - 2);
    return pixelOf(parts[left].map((part, i) => Math.round(part + (parts[left + 1][i] - part) * (place - left))));
  });
}

// The least of 1, 2, 5, 10, 20 ... that is not below.
function roundUp(value) {
  const ten = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map(digit => digit * ten).find(round => round >= value * 0.999999);
}

// The sizes of known cells in order, of many those of a sample. A figure that most cells lack, such as the time that
// others waited, is judged by the cells that have it: without those that are 0.
function sizesOf(values, withZeros) {
  const known = new Float64Array(values.length);
  let count = 0;
  for (let index = 0; index < values.length; ++index) {
    const value = values[index];
    if (Number.isFinite(value) && (withZeros || value !== 0)) known[count++] = value;
  }
  const each = Math.max(1, Math.floor(count / 20000));
  return Float64Array.from({length: Math.ceil(count / each)}, (_, index) => Math.abs(known[index * each])).sort();
}
const quantile = (sorted, share) => sorted[Math.floor((sorted.length - 1) * share)] ?? 0;

// A few cells of a thousand may lie outside of the scale; they have the colour of its end.
const kInside = 0.998;

function scaleOf(figure, values, relative) {
  const colours = kScaleColours[Theme.dark ? "dark" : "light"];
  const most = quantile(sizesOf(values, false), kInside);
  if (!relative) {
    const low = figure.byDifference ? 0 : quantile(sizesOf(values, true), 0);
    return {low, high: Math.max(most, low + 1), shades: shadesOf(colours.sizes), text: figure.text};
  }
  // Noise stays pale, also where a pixel shows the greatest of many cells: eight times its median size is inside.
  const noise = 8 * quantile(sizesOf(values, true), 0.5);
  const limit = roundUp(Math.max(most, noise, figure.byDifference ? 1 : 0.05));
  const text = value => (value === 0 ? "median" : Figures.differenceText(figure, value));
  return {low: -limit, high: limit, shades: shadesOf(colours.differences), text};
}

function shadeOf(scale, value) {
  const place = ((value - scale.low) / (scale.high - scale.low)) * (kShades - 1);
  return scale.shades[place <= 0 ? 0 : place >= kShades - 1 ? kShades - 1 : Math.round(place)];
}

function legendOf(scale) {
  const bar = make("canvas", {width: kShades, height: 1, "aria-hidden": "true"});
  const context = bar.getContext("2d");
  const image = context.createImageData(kShades, 1);
  new Uint32Array(image.data.buffer).set(scale.shades);
  context.putImageData(image, 0, 0);
  return [
    make("span", {class: "scale"}, scale.text(scale.low), bar, `${scale.text(scale.high)} and more`),
    make("span", {class: "scale"}, make("i"), "not known"),
  ];
}
