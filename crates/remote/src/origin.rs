use reqwest::Url;

/// Why an address cannot be that of a remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    #[error("it is not an absolute https:// address")]
    Unreadable,
    #[error("it must not contain a user name or password; name the credential beside it")]
    Credentials,
    #[error("it must end after the host and port: workers are addressed by them alone")]
    Path,
}

/// `https://Host:443/` → `https://host`: what workers' addresses are compared with. Plain HTTP is taken where it is
/// written down; whether that is wise is the operator's to know.
pub fn origin(url: &str) -> Result<String, BadAddress> {
    let url = Url::parse(url.trim()).map_err(|_| BadAddress::Unreadable)?;
    if !matches!(url.scheme(), "https" | "http") || url.host_str().is_none_or(str::is_empty) {
        return Err(BadAddress::Unreadable);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(BadAddress::Credentials);
    }
    if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
        return Err(BadAddress::Path);
    }
    Ok(url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_one_spelling() {
        for url in
            ["https://North.Example", "https://north.example/", "https://north.example:443", " https://north.example "]
        {
            assert_eq!(origin(url).as_deref(), Ok("https://north.example"), "{url}");
        }
        assert_eq!(origin("http://127.0.0.1:7717").as_deref(), Ok("http://127.0.0.1:7717"));
    }

    #[test]
    fn what_is_no_origin_is_told_apart() {
        for url in ["", "north.example", "ftp://north.example", "https://", "file:///etc"] {
            assert_eq!(origin(url), Err(BadAddress::Unreadable), "{url}");
        }
        for url in ["https://me@north.example", "https://:pw@north.example"] {
            assert_eq!(origin(url), Err(BadAddress::Credentials), "{url}");
        }
        for url in ["https://north.example/baton", "https://north.example/?x", "https://north.example#y"] {
            assert_eq!(origin(url), Err(BadAddress::Path), "{url}");
        }
    }
}
