// Browsers start no worker for a page that is opened as a file, and the search runs in a worker.
// Here an iframe without a page of its own takes its place. The theme asks for the name IFrameWorker.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inside.importScripts = (...urls) =>
        urls.reduce((before, next) => before.then(() => this.load(next)), Promise.resolve());
      this.ready = this.load(new URL(url, location.href).href);
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.inside.document.createElement("script");
        script.onload = resolve;
        script.onerror = reject;
        script.src = url;
        this.inside.document.body.append(script);
      });
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
  window.Worker = window.IFrameWorker;
}
