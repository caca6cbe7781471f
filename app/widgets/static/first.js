// Runs before Streamlit's own scripts, on every page. It says where the server is (Streamlit would try the path of the
// page first, and the browser would log the failures), chooses the theme, and waits where the server does not answer.
(() => {
  window.__streamlit = { BACKEND_BASE_URL: new URL(".", location.href).href };

  // The theme: Streamlit and page.css follow the system, unless this browser has chosen one. Streamlit asks for the
  // system's in one way only, so that a choice holds at once, and on all pages.
  const DARK = "(prefers-color-scheme: dark)";
  const ask = window.matchMedia.bind(window);
  const system = ask(DARK);
  const choice = () => /(?:^|; )showhow_theme=(light|dark)(?:;|$)/.exec(document.cookie)?.[1];
  const scheme = Object.defineProperties(new EventTarget(), {
    media: { value: DARK },
    matches: { get: () => (choice() ? choice() === "dark" : system.matches) },
  });
  const apply = () => {
    const shown = scheme.matches ? "dark" : "light";
    if (document.documentElement.dataset.scheme === shown) return;
    document.documentElement.dataset.scheme = shown;
    scheme.dispatchEvent(new Event("change"));
  };
  window.matchMedia = (query) => (query === DARK ? scheme : ask(query));
  system.addEventListener("change", apply);
  document.addEventListener("showhow:theme", apply);
  apply();

  // The server: Streamlit asks whether it is there before it connects. The question waits for the answer, once a second,
  // so that the page goes on as soon as the server runs again, and says meanwhile what is the matter.
  const request = window.fetch.bind(window);
  const QUESTIONS = /\/_stcore\/(health|host-config)$/;
  const UNREACHED = [502, 504];
  let banner;
  const tell = (isAway) => {
    if (!isAway) return (banner?.remove(), (banner = undefined));
    if (banner) return;
    banner = document.createElement("div");
    banner.id = "server-away";
    banner.setAttribute("role", "alert");
    banner.style.cssText = "position:fixed;inset:0 0 auto 0;z-index:1000000;padding:.7rem 1.25rem;background:#8a1f11;" +
      "color:#fff;font:600 1rem/1.4 'Source Sans',system-ui,sans-serif;text-align:center;box-shadow:0 2px 10px rgba(0,0,0,.3)";
    const isHere = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
    banner.textContent = navigator.onLine || isHere
      ? "Showhow's server is not running. " +
        (isHere ? "Start it with make run or showhow run" : "Tell the person who runs it") +
        "; this page goes on by itself as soon as the server runs."
      : "This device is not connected to a network; this page goes on by itself as soon as it is.";
    document.body.append(banner);
  };
  window.fetch = async (...query) => {
    const address = String(query[0]?.url ?? query[0]);
    if (!QUESTIONS.test(address)) return request(...query);
    for (;;) {
      const reply = await request(address, { cache: "no-store" }).catch(() => undefined);
      tell(!reply || UNREACHED.includes(reply.status));
      // The login has ended: the page, loaded again, leads to the login.
      if (reply?.status === 401) location.reload();
      if (!banner) return reply;
      await new Promise((done) => setTimeout(done, 1000));
    }
  };

  // A server that was started anew knows nothing of the page, and Streamlit does not ask it to run: page_keys.js does.
  const Socket = window.WebSocket;
  let opened = false;
  window.WebSocket = class extends Socket {
    constructor(...address) {
      super(...address);
      this.addEventListener("open", () => {
        if (opened) setTimeout(() => document.dispatchEvent(new Event("showhow:reconnected")));
        opened = true;
      });
    }
  };
})();
