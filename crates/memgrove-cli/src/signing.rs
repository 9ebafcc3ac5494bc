//! Who signs a change that came over HTTP: the token comes first, because clients choose their own names.

/// Separates the token from the client. No token's name contains it.
pub(crate) const BETWEEN: char = '/';

/// The signature of a token, with the name of its client if that gives one.
pub(crate) fn signed(token: &str, client: Option<&str>) -> String {
    match client.filter(|client| !client.trim().is_empty() && *client != token) {
        Some(client) => format!("{token}{BETWEEN}{client}"),
        None => token.to_owned(),
    }
}

/// The token in a signature.
pub(crate) fn signer(client: &str) -> &str {
    client.split(BETWEEN).next().unwrap_or(client)
}
