//! Panics of simulated tasks. A scheduler catches them, and nobody would hear of them.

use std::cell::RefCell;
use std::sync::Once;

/// What a step of a poisoned run says when it panics.
pub(crate) const POISONED: &str = "poison: the simulation says so";

thread_local! {
    static HEARD: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// From now on panics of this thread are noted and not printed, until [`heard`].
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let text = info.payload().downcast_ref::<&str>().map(ToString::to_string);
            let text = text.or_else(|| info.payload().downcast_ref::<String>().cloned()).unwrap_or_default();
            let noted = HEARD.try_with(|heard| match &mut *heard.borrow_mut() {
                Some(_) if text == POISONED => true,
                Some(heard) => {
                    let place = info.location().map(ToString::to_string).unwrap_or_default();
                    heard.push(format!("{place}: {text}"));
                    true
                }
                None => false,
            });
            if !noted.unwrap_or(false) {
                before(info);
            }
        }));
    });
    HEARD.set(Some(Vec::new()));
}

/// What has panicked, except for what was meant to.
pub(crate) fn heard() -> Vec<String> {
    HEARD.take().unwrap_or_default()
}
