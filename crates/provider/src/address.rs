//! Where a provider is. The operator decides that, so no place is forbidden; but a key does not travel in the open.

use std::net::{Ipv4Addr, Ipv6Addr};

use reqwest::Url;

/// Reads a base URL. What is said about a wrong one does not repeat it.
pub(crate) fn read(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text.trim()).map_err(|_| "is not a URL such as https://models.example.com/v1")?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("holds a password; put it into the key or a header");
    }
    if url.fragment().is_some() || url.cannot_be_a_base() {
        return Err("is not a URL such as https://models.example.com/v1");
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_near(&url) => Ok(url),
        "http" => Err("uses plain http for a place that is not on this machine or a private network; use https"),
        _ => Err("must begin with https://, or http:// on a private network"),
    }
}

/// On this machine, or on a network that is not open to all.
fn is_near(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse::<Ipv4Addr>() {
        // The last is shared by carriers and private overlays.
        return ip.is_loopback() || ip.is_private() || ip.is_link_local() || matches!(ip.octets(), [100, 64..=127, ..]);
    }
    if let Ok(ip) = bare.parse::<Ipv6Addr>() {
        return ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local();
    }
    // A name without a dot is known only where it is.
    let private = [".localhost", ".local", ".internal", ".home.arpa"];
    !host.contains('.') || private.iter().any(|end| host.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_stays_near() {
        let fine = [
            "https://api.example.com/v1",
            "http://localhost:11434/v1",
            "http://127.0.0.1:8000",
            "http://[::1]:8000/v1",
            "http://[fd00::7]/v1",
            "http://10.1.2.3/v1",
            "http://192.168.0.9:8080/v1/",
            "http://100.100.1.1/v1",
            "http://ollama:11434/v1",
            "http://gpu.lab.internal/v1",
        ];
        for text in fine {
            assert!(read(text).is_ok(), "{text}");
        }
        let wrong = [
            "http://api.example.com/v1",
            "http://8.8.8.8/v1",
            "http://[2001:db8::1]/v1",
            "https://a:b@example.com",
            "https://example.com/#x",
            "mailto:a@example.com",
            "file:///etc/passwd",
            "example.com/v1",
            "",
        ];
        for text in wrong {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
