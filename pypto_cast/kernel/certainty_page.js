(() => {
  const { causes, colors, pictures } = JSON.parse(document.getElementById("data").textContent);
  const [GAP, MOST, HEIGHT] = [5, 24, 560]; // CSS pixels: outlined from, cell at most, picture at most
  const color = (cause) => colors[Math.min(cause, colors.length - 1)];

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

    function draw() {
      const style = getComputedStyle(canvas);
      const room = canvas.parentElement.clientWidth;
      const ratio = window.devicePixelRatio || 1;
      width = Math.min(MOST, room / data.cols);
      height = Math.min(MOST, Math.max(2, Math.min(width, HEIGHT / data.rows)));
      canvas.style.width = `${width * data.cols}px`;
      canvas.style.height = `${height * data.rows}px`;
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
        pen.fillStyle = color(cell[4][0]);
        pen.fillRect(...box(cell), width, height);
        pen.globalAlpha = 1;
        if (cell[2] === 1 && Math.min(width, height) >= GAP) pen.strokeRect(...box(cell), width, height);
      }
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
