//! Where a webhook may point. Checked when it is registered and again, against the resolved addresses, every time a
//! connection is made: see [`baton_tool::egress`].

use baton_model::code;
use reqwest::Url;

use super::Webhooks;
use crate::{Error, ErrorKind};

impl Webhooks {
    pub(crate) fn check_url(&self, url: &str) -> Result<(), Error> {
        let unreadable = || Error::invalid("`url` must be an absolute https:// address with a host.");
        let parsed = Url::parse(url).map_err(|cause| unreadable().because(cause))?;
        if parsed.host_str().is_none_or(str::is_empty) {
            return Err(unreadable());
        }
        self.guard.check(&parsed).map_err(|refused| {
            let message = format!("This webhook address is not allowed: {refused}. Use a public https:// endpoint.");
            Error::new(ErrorKind::Invalid, code::WEBHOOK_URL_REJECTED, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(url: &str, allow_private: bool) -> Result<(), &'static str> {
        Webhooks::new(allow_private).check_url(url).map_err(|error| error.code)
    }

    #[test]
    fn what_the_guard_refuses_is_rejected() {
        assert_eq!(verdict("https://hooks.example.com/in?x=1", false), Ok(()));
        for url in
            ["http://hooks.example.com", "https://user@hooks.example.com", "https://localhost/x", "https://10.0.0.1"]
        {
            assert_eq!(verdict(url, false), Err(code::WEBHOOK_URL_REJECTED), "{url}");
        }
        assert_eq!(verdict("http://127.0.0.1:9/x", true), Ok(()));
        assert_eq!(verdict("ftp://127.0.0.1", true), Err(code::WEBHOOK_URL_REJECTED));
    }

    #[test]
    fn what_is_no_address_is_a_validation_error() {
        for url in ["", "hooks.example.com", "/path", "https://", "https://?x", "https://exa mple.com", "mailto:a@b.c"]
        {
            assert_eq!(verdict(url, false), Err(code::VALIDATION_ERROR), "{url:?}");
        }
        assert_eq!(verdict("127.0.0.1:9", true), Err(code::VALIDATION_ERROR));
    }
}
