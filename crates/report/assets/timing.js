// Switches between the levels, shows one task's times or all, and leads from a node to its columns.
(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const show = (level) => {
    for (const part of all("[data-level]")) part.hidden = part.dataset.level !== level;
    for (const button of all("[data-show]")) {
      button.setAttribute("aria-pressed", String(button.dataset.show === level));
    }
  };
  for (const button of all("[data-show]")) {
    button.addEventListener("click", () => show(button.dataset.show));
  }
  const select = document.getElementById("task");
  const choose = (task) => {
    for (const part of all("[data-task]")) part.hidden = task !== "" && part.dataset.task !== task;
  };
  select.addEventListener("input", () => choose(select.value));
  for (const node of all("[data-node]")) {
    node.addEventListener("click", () => {
      const name = node.dataset.node;
      for (const other of all("[data-node]")) other.classList.toggle("chosen", other.dataset.node === name);
      for (const column of all("[data-column]")) {
        column.classList.toggle("chosen", column.dataset.column === name);
      }
      select.value = name.split("-")[0];
      choose(select.value);
      document.getElementById("times").scrollIntoView({ behavior: "smooth" });
    });
  }
})();
