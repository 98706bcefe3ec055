// The form for documents, alive: several files one after another, their text page by page.
//
// Every word that is shown stands in the page's template, where it is translated.

const PASSWORD = new Set(["password_required", "wrong_password"]);
const TRIES = 20;

const say = (template, values = {}) =>
  template.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");

const sleep = (seconds, signal) =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const timer = setTimeout(resolve, seconds * 1000);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });

// Yield the objects of a response that has one on each line.
async function* objects(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) yield JSON.parse(line);
  }
  if (rest) yield JSON.parse(rest);
}

class Problem extends Error {
  constructor(details, login) {
    super(details.detail);
    this.details = details;
    this.login = login;
  }
}

async function problemOf(response) {
  const login = /login="([^"]+)"/.exec(response.headers.get("WWW-Authenticate") ?? "")?.[1];
  const isProblem = response.headers.get("Content-Type")?.startsWith("application/problem+json");
  const details = isProblem ? await response.json() : { detail: `HTTP ${response.status}` };
  return new Problem(details, login);
}

class Item {
  constructor(file, options, form, template) {
    this.file = file;
    this.options = options;
    this.form = form;
    this.element = template.content.firstElementChild.cloneNode(true);
    this.parts = {};
    for (const part of this.element.querySelectorAll("[data-part]")) {
      this.parts[part.dataset.part] = part;
    }
    this.progress = this.element.querySelector("progress");
    this.element.querySelector("h2").textContent = file.name;
    for (const control of this.element.querySelectorAll("button, a, progress, input")) {
      const label = control.getAttribute("aria-label") ?? control.textContent.trim();
      if (label) control.setAttribute("aria-label", `${label}: ${file.name}`);
    }
    this.parts.cancel.addEventListener("click", () => this.cancel());
    this.parts.copy.addEventListener("click", () => this.copy());
    this.reset();
  }

  reset() {
    this.aborting = new AbortController();
    this.result = { document: null, pages: [], end: null };
    this.parts.pages.replaceChildren();
    this.says("waiting");
    for (const name of ["unlock", "again", "copy", "text", "json", "login"]) {
      this.parts[name].hidden = true;
    }
    this.progress.hidden = true;
    this.parts.cancel.hidden = false;
    this.element.classList.remove("failed");
  }

  says(key, values) {
    this.parts.says.textContent = say(this.parts.says.dataset[key], values);
  }

  cancel() {
    this.aborting.abort();
  }

  // Read the document; return whether that is all there is to do for it.
  async run() {
    try {
      await this.readPatiently();
    } catch (error) {
      this.fail(error);
    }
    this.parts.cancel.hidden = true;
    this.progress.hidden = true;
  }

  async readPatiently() {
    for (let tries = 1; ; tries++) {
      try {
        return await this.read();
      } catch (error) {
        const seconds = error.details?.retry_after;
        if (!seconds || tries === TRIES) throw error;
        await this.countDown(seconds);
      }
    }
  }

  async countDown(seconds) {
    for (let left = seconds; left > 0; left--) {
      this.says("busy", { seconds: left });
      await sleep(1, this.aborting.signal);
    }
  }

  async read() {
    this.says("sending");
    const body = new FormData();
    for (const [name, value] of Object.entries(this.options)) body.set(name, value);
    body.set("file", this.file);
    const response = await fetch(this.form.dataset.pdfpoolExtract, {
      method: "POST",
      body,
      signal: this.aborting.signal,
      headers: {
        Accept: "application/x-ndjson",
        "X-CSRFToken": this.form.elements.csrfmiddlewaretoken.value,
      },
    });
    if (!response.ok) throw await problemOf(response);
    for await (const event of objects(response)) this.take(event);
    if (!this.result.end) throw new TypeError("the answer ended early");
  }

  take(event) {
    if (event.type === "document") {
      this.result.document = event;
      this.progress.max = Math.max(event.selected, 1);
      this.progress.value = 0;
      this.progress.hidden = false;
      this.says("opened", { selected: event.selected });
    } else if (event.type === "page") {
      this.result.pages.push(event);
      this.show(event);
      const done = this.result.pages.length;
      this.progress.value = done;
      this.says("page", { done, selected: this.result.document.selected });
    } else if (event.type === "error") {
      throw new Problem(event.error);
    } else {
      this.finish(event);
    }
  }

  show(page) {
    const shown = document.createElement("section");
    const title = document.createElement("h3");
    title.textContent = say(this.parts.pages.dataset.title, { label: page.label });
    shown.append(title);
    if (page.error) shown.append(paragraph(page.error.detail, "problem"));
    for (const warning of page.warnings) shown.append(paragraph(warning.detail, "help"));
    if (page.text) {
      const text = document.createElement("pre");
      text.textContent = page.text;
      text.tabIndex = 0;
      shown.append(text);
    }
    this.parts.pages.append(shown);
  }

  finish(end) {
    this.result.end = end;
    const values = {
      done: this.result.pages.length,
      seconds: end.elapsed.toFixed(2),
      detail: end.error?.detail ?? "",
    };
    this.says(end.complete ? "complete" : "incomplete", values);
    this.element.classList.toggle("failed", !end.complete);
    const { type, ...whole } = end;
    this.offer("text", this.text(), "text/plain", ".txt");
    this.offer(
      "json",
      JSON.stringify({ ...whole, pages: this.result.pages.map(({ type, ...page }) => page) }),
      "application/json",
      ".json",
    );
    this.parts.copy.hidden = !navigator.clipboard;
  }

  text() {
    return this.result.pages.map((page) => page.text).join("\f");
  }

  offer(part, content, type, ending) {
    const link = this.parts[part];
    URL.revokeObjectURL(link.href);
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = this.file.name.replace(/\.pdf$/i, "") + ending;
    link.hidden = false;
  }

  async copy() {
    await navigator.clipboard.writeText(this.text());
    this.parts.copy.textContent = this.parts.copy.dataset.copied;
  }

  fail(error) {
    this.element.classList.add("failed");
    if (error.name === "AbortError") {
      this.says("cancelled");
    } else if (error instanceof Problem) {
      this.parts.says.textContent = error.message;
    } else {
      this.says("offline");
    }
    this.parts.login.hidden = !error.login;
    if (error.login) this.parts.login.href = error.login;
    const locked = PASSWORD.has(error.details?.code);
    this.parts.unlock.hidden = !locked;
    this.parts.again.hidden = locked;
    // Nobody who is busy elsewhere on the page is taken away from there.
    const idle = document.activeElement === document.body;
    if (locked && idle) this.parts.unlock.querySelector("input").focus();
  }
}

function paragraph(text, className) {
  const made = document.createElement("p");
  made.className = className;
  made.textContent = text;
  return made;
}

class Uploader {
  constructor(form) {
    this.form = form;
    this.list = document.querySelector("[data-pdfpool-list]");
    this.template = document.querySelector("template[data-pdfpool-item]");
    this.state = form.querySelector("[data-pdfpool-state]");
    this.waiting = [];
    this.running = false;
    const input = form.elements.file;
    input.multiple = true;
    form.querySelector("[data-pdfpool-hint]").hidden = false;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.add(input.files);
      input.value = "";
    });
    this.listenForDrops(form.querySelector(".dropzone"));
    this.showState();
  }

  listenForDrops(zone) {
    for (const name of ["dragenter", "dragover"]) {
      zone.addEventListener(name, (event) => {
        event.preventDefault();
        zone.classList.add("over");
      });
    }
    for (const name of ["dragleave", "drop"]) {
      zone.addEventListener(name, () => zone.classList.remove("over"));
    }
    zone.addEventListener("drop", (event) => {
      event.preventDefault();
      this.add(event.dataTransfer.files);
    });
  }

  // The options are those of this moment: the next files may have others.
  add(files) {
    const { pages, password } = this.form.elements;
    const options = {};
    if (pages.value) options.pages = pages.value;
    if (password.value) options.password = password.value;
    for (const file of files) {
      const item = new Item(file, { ...options }, this.form, this.template);
      item.parts.again.addEventListener("click", () => this.repeat(item));
      item.parts.unlock.addEventListener("submit", (event) => {
        event.preventDefault();
        const input = item.parts.unlock.querySelector("input");
        item.options.password = input.value;
        input.value = "";
        this.repeat(item);
      });
      this.list.append(item.element);
      this.waiting.push(item);
    }
    this.work();
  }

  repeat(item) {
    item.reset();
    this.waiting.push(item);
    this.work();
  }

  // One after another: a caller has one document read at a time.
  async work() {
    if (this.running) return;
    this.running = true;
    while (this.waiting.length) {
      const item = this.waiting.shift();
      await item.run();
      await this.showState();
    }
    this.running = false;
  }

  async showState() {
    try {
      const response = await fetch(this.form.dataset.pdfpoolHealth);
      const state = await response.json();
      const key = !state.available ? "down" : state.running < state.slots ? "idle" : "busy";
      this.state.textContent = say(this.state.dataset[key], state);
    } catch {
      this.state.textContent = "";
    }
  }
}

for (const form of document.querySelectorAll("form[data-pdfpool-extract]")) new Uploader(form);
