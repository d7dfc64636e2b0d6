/** The connection to the run: events as they come, and questions. It comes back by itself when a run does. */

const KEY = "millrace-token";
const RETRY = 1000;

/** The token of the run, from the address that it printed; it stays in this tab. */
export function token() {
  const given = decodeURIComponent(location.hash.slice(1));
  if (given) {
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(KEY) ?? "";
}

/** @param {string} text */
export function setToken(text) {
  sessionStorage.setItem(KEY, text.trim());
}

/** @returns {Object<string, string>} */
function headers() {
  return token() ? { Authorization: `Bearer ${token()}` } : {};
}

/** What a refusal says. */
export class Refusal extends Error {
  /** @param {number} status @param {string} fact @param {string} hint */
  constructor(status, fact, hint) {
    super(fact);
    this.status = status;
    this.hint = hint;
  }
}

/**
 * An answer of the server.
 * @param {string} path
 * @param {object} [body] given, it is sent by POST
 * @returns {Promise<any>}
 */
export async function ask(path, body) {
  const answer = await fetch(path, body === undefined ? { headers: headers() } : {
    method: "POST",
    headers: { ...headers(), "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const data = await answer.json();
  if (!answer.ok) throw new Refusal(answer.status, data.error, data.hint);
  return data;
}

/**
 * Call back with each event, for ever: `open`, those of the server, and `lost`.
 * @param {(name: string, data: any) => void} told
 * @param {() => Promise<void>} needsToken
 */
export async function follow(told, needsToken) {
  for (;;) {
    try {
      const answer = await fetch("/page/events", { headers: headers() });
      if (answer.status === 401) {
        await needsToken();
        continue;
      }
      if (!answer.ok || !answer.body) throw new Error(`status ${answer.status}`);
      told("open", null);
      await read(answer.body, told);
    } catch (error) {
      if (!(error instanceof TypeError)) console.info(error);
    }
    told("lost", null);
    await new Promise((resolve) => setTimeout(resolve, RETRY));
  }
}

/** @param {ReadableStream<Uint8Array>} body @param {(name: string, data: any) => void} told */
async function read(body, told) {
  const reader = body.getReader(), decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += decoder.decode(value, { stream: true });
    const events = rest.split("\n\n");
    rest = events.pop() ?? "";
    for (const event of events) {
      const name = /^event: (.*)$/m.exec(event), data = /^data: (.*)$/m.exec(event);
      if (name && data) told(name[1], JSON.parse(data[1]));
    }
  }
}
