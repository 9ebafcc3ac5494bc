//! Who signs a change that came over HTTP: the token first, because a client calls itself what it wants.

/// What stands between the token and the client. No token has it in its name.
pub(crate) const BETWEEN: char = '/';

/// How a token signs for a client, if that says its name.
pub(crate) fn signed(token: &str, client: Option<&str>) -> String {
    match client.filter(|client| !client.trim().is_empty() && *client != token) {
        Some(client) => format!("{token}{BETWEEN}{client}"),
        None => token.to_owned(),
    }
}

/// The token that signed.
pub(crate) fn signer(client: &str) -> &str {
    client.split(BETWEEN).next().unwrap_or(client)
}
