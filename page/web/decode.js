// The data of the page: JSON, and columns of numbers as page/column.h writes them.

const Data = {json: new Map(), columns: new Map()};

function bytesOfBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const value = new Uint8Array(128);
  for (let i = 0; i < 64; ++i) value[digits.charCodeAt(i)] = i;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const bytes = new Uint8Array((text.length / 4) * 3 - padding);
  for (let from = 0, to = 0; from < text.length; from += 4) {
    const group =
      (value[text.charCodeAt(from)] << 18) |
      (value[text.charCodeAt(from + 1)] << 12) |
      (value[text.charCodeAt(from + 2)] << 6) |
      value[text.charCodeAt(from + 3)];
    bytes[to++] = group >> 16;
    if (to < bytes.length) bytes[to++] = group >> 8;
    if (to < bytes.length) bytes[to++] = group;
  }
  return bytes;
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Varints of up to 53 bits; of differences the zigzag form is undone and they are summed up.
function decodeNumbers(bytes, numbers, differences) {
  let offset = 0,
    last = 0;
  for (let i = 0; i < numbers.length; ++i) {
    let byte = bytes[offset++];
    let value = byte & 127;
    for (let unit = 128; byte > 127; unit *= 128) {
      byte = bytes[offset++];
      value += (byte & 127) * unit;
    }
    if (differences) {
      last += value % 2 ? -(value + 1) / 2 : value / 2;
      value = last;
    }
    numbers[i] = value;
  }
  return numbers;
}

// Times and figures need more than 32 bits; what else calls hold does not.
const isTime = name => /\.(begin|duration|figure)$/.test(name);

async function readData() {
  const jobs = [];
  for (const script of document.querySelectorAll("script[data-name]")) {
    const {name, count, coding} = script.dataset;
    if (script.type === "application/json") {
      Data.json.set(name, JSON.parse(script.textContent));
      continue;
    }
    const bytes = bytesOfBase64(script.textContent);
    script.remove(); // its text is not needed any more
    jobs.push(
      inflate(bytes).then(plain => {
        if (script.type === "application/x-deflated-json") {
          Data.json.set(name, JSON.parse(new TextDecoder().decode(plain)));
        } else {
          const numbers = isTime(name) ? new Float64Array(+count) : new Int32Array(+count);
          Data.columns.set(name, decodeNumbers(plain, numbers, coding === "difference"));
        }
      }),
    );
  }
  await Promise.all(jobs);
}
