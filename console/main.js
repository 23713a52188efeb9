// Where the console begins: theme first, so that nothing flashes; then the address, the keyboard and the frame.
import { startActivity } from "./lib/activity.js";
import { startKeys } from "./lib/keys.js";
import { startRouter } from "./lib/router.js";
import { applyTheme } from "./lib/theme.js";
import { toastError } from "./lib/toast.js";
import { routes } from "./routes.js";
import { mountShell } from "./shell.js";

applyTheme();
startRouter(routes);
startKeys();
mountShell(/** @type {HTMLElement} */ (document.getElementById("app")));
startActivity();

// Whatever was not caught is told: a console that fails silently is worse than one that fails.
addEventListener("error", (event) => toastError(event.error ?? event.message, "The console"));
addEventListener("unhandledrejection", (event) => {
  if (event.reason?.name !== "AbortError") toastError(event.reason, "The console");
});
