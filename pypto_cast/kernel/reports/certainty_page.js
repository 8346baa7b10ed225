(() => {
  const { causes, colors, pictures } = JSON.parse(document.getElementById("data").textContent);
  // CSS pixels: outlined from, numbered from, cell at most unless the picture is narrow, picture.
  const [GAP, NUMBERED, MOST, NARROW, HEIGHT] = [5, 16, 24, 240, 560];
  const kind = (cause) => colors[Math.min(cause, colors.length - 1)];
  const styles = Object.fromEntries(
    colors.map((name) => {
      const swatch = document.querySelector(`.key.${name}`) ?? document.body;
      const { backgroundColor, color } = getComputedStyle(swatch);
      return [name, [backgroundColor, color]];
    }),
  );

  function words(cell) {
    const [, count, total, first, shares] = cell;
    const lines = total > 1 ? [`${count} of ${total} undecided`, `first ${first}`] : [first];
    for (let at = 0; at < shares.length; at += 2) {
      const times = total > 1 ? `${shares[at + 1]} ` : "";
      lines.push(`${times}left open by ${causes[shares[at]]}`);
    }
    return lines.join("\n");
  }

  function picture(canvas, data) {
    // Of large outputs most cells hold something undecided: their shade tells how much.
    const most = Math.max(...data.cells.map((cell) => cell[1] / cell[2]));
    const at = new Map(data.cells.map((cell, number) => [cell[0], number]));
    let [width, height, chosen] = [1, 1, -1];
    const frame = canvas.closest(".picture");
    const part = (name) => frame.querySelector(name);
    const label = ([at, text], parent, side, count) => {
      const made = Object.assign(document.createElement("span"), { textContent: text });
      made.style[side] = `${(100 * (at + 0.5)) / count}%`;
      part(parent).append(made);
    };
    data.row_ticks.forEach((tick) => label(tick, ".rows", "top", data.rows));
    data.col_ticks.forEach((tick) => label(tick, ".ticks", "left", data.cols));
    part(".rows").style.width = `${Math.max(...data.row_ticks.map((tick) => tick[1].length))}ch`;
    part(".axis").textContent = data.axis;

    function draw() {
      const style = getComputedStyle(canvas);
      const room = canvas.parentElement.clientWidth;
      const ratio = window.devicePixelRatio || 1;
      width = Math.min(Math.max(MOST, NARROW / data.cols), room / data.cols);
      height = Math.min(MOST, Math.max(2, Math.min(width, HEIGHT / data.rows)));
      canvas.style.width = `${width * data.cols}px`;
      canvas.style.height = `${height * data.rows}px`;
      part(".ticks").style.width = part(".axis").style.width = canvas.style.width;
      canvas.width = Math.round(width * data.cols * ratio);
      canvas.height = Math.round(height * data.rows * ratio);
      const pen = canvas.getContext("2d");
      pen.scale(canvas.width / (width * data.cols), canvas.height / (height * data.rows));
      pen.fillStyle = style.fill;
      pen.fillRect(0, 0, width * data.cols, height * (data.rows - 1));
      pen.fillRect(0, height * (data.rows - 1), width * data.tail, height);
      const box = (cell) => [(cell[0] % data.cols) * width, Math.floor(cell[0] / data.cols) * height];
      pen.strokeStyle = style.stroke;
      pen.lineWidth = 0.5;
      for (const cell of data.cells) {
        pen.globalAlpha = 0.3 + (0.7 * cell[1]) / cell[2] / most;
        const [left, top] = box(cell);
        const [paper, ink] = styles[kind(cell[4][0])];
        pen.fillStyle = paper;
        pen.fillRect(left, top, width, height);
        pen.globalAlpha = 1;
        if (cell[2] === 1 && Math.min(width, height) >= GAP) pen.strokeRect(left, top, width, height);
        if (Math.min(width, height) < NUMBERED) continue;
        pen.fillStyle = ink;
        pen.fillText(cell[4][0] + 1, left + 2, top + 10);
      }
      pen.strokeStyle = style.color;
      pen.lineWidth = 1;
      pen.beginPath();
      for (const at of data.row_lines) {
        pen.moveTo(0, at * height);
        pen.lineTo(width * data.cols, at * height);
      }
      for (const at of data.col_lines) {
        pen.moveTo(at * width, 0);
        pen.lineTo(at * width, height * data.rows);
      }
      pen.stroke();
      if (chosen >= 0) {
        pen.strokeStyle = style.color;
        pen.lineWidth = 2;
        pen.strokeRect(...box(data.cells[chosen]), width, height);
      }
    }

    function choose(number) {
      if (number === chosen) return;
      chosen = number;
      draw();
      tell(number < 0 ? null : words(data.cells[number]), around);
    }

    function around() {
      const cell = data.cells[chosen][0];
      const frame = canvas.getBoundingClientRect();
      const left = frame.left + (cell % data.cols) * width;
      const top = frame.top + Math.floor(cell / data.cols) * height;
      return { left, top, right: left + width, bottom: top + height };
    }

    function under(event) {
      const frame = canvas.getBoundingClientRect();
      const col = Math.floor((event.clientX - frame.left) / width);
      const row = Math.floor((event.clientY - frame.top) / height);
      const inside = col >= 0 && col < data.cols && row >= 0 && row < data.rows;
      return (inside ? at.get(row * data.cols + col) : undefined) ?? -1;
    }

    explore(canvas, { last: data.cells.length - 1, chosen: () => chosen, choose, under });
    new ResizeObserver(draw).observe(canvas.parentElement);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    draw();
  }

  pictures.forEach((data, number) => picture(document.getElementById(`picture-${number}`), data));
})();
