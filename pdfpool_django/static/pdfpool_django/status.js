// Shows the state anew every two seconds, while somebody looks.

const SECONDS = 2;

async function refresh() {
  if (document.hidden) return;
  const response = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const fresh = page.querySelector("[data-pdfpool-refresh]");
  if (fresh) document.querySelector("[data-pdfpool-refresh]").replaceWith(fresh);
}

setInterval(() => refresh().catch(() => {}), SECONDS * 1000);
