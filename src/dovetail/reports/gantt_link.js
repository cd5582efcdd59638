// A link to what a figure shows: the address of the page carries policy, stretch, lanes, colours and the kept job, as
// in #gantt&policy=easy&from=3600&to=7200&job=12. What stands there is foreign: only numbers and known names are taken.

const SETTLED = 300; // milliseconds without a change after which the address follows: browsers allow few changes

function addressOf(key, state) {
  return `#${key}&${new URLSearchParams(Object.entries(state).filter(([, value]) => value !== undefined))}`;
}

// What an address says of a figure; null where it says nothing of it.
function stateOf(key, address) {
  if (!address.startsWith(`#${key}&`)) return null;
  const found = new URLSearchParams(address.slice(key.length + 2));
  const number = (name) => (found.has(name) && Number.isFinite(Number(found.get(name))) ? Number(found.get(name)) : undefined);
  const [from, to, low, high] = ["from", "to", "low", "high"].map(number);
  return { policy: found.get("policy"), colour: found.get("colour"), job: found.get("job"), from, to, low, high };
}

// Lets the address follow, soon after the last change.
function addressKeeper(key, state) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(() => setAddress(addressOf(key, state())), SETTLED);
  };
}

function setAddress(address) {
  try {
    history.replaceState(null, "", address);
  } catch {
    // A page within another may not: then its address stays.
  }
}

// Puts a text on the clipboard, and says whether the browser let it.
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
