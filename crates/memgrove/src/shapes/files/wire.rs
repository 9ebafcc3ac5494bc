//! How operations with a content are written in JSON: text as `content`, other bytes in base64.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::backend::Version;
use crate::locator::Locator;
use crate::text::content;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    path: Locator,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content_base64: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expect: Option<Version>,
}

impl Wire {
    fn bytes<E: serde::de::Error>(&mut self) -> Result<Vec<u8>, E> {
        let given = content::given("content", self.content.take(), self.content_base64.as_deref());
        given
            .map_err(|error| E::custom(error.message()))?
            .ok_or_else(|| E::custom("`content` is missing; `content_base64` is for what is not text"))
    }
}

pub(super) mod create {
    use super::*;

    pub(in super::super) fn serialize<S: Serializer>(
        path: &Locator,
        bytes: &[u8],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        super::write::serialize(path, bytes, &None, to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<(Locator, Vec<u8>), D::Error> {
        match super::write::deserialize(from)? {
            (path, bytes, None) => Ok((path, bytes)),
            (.., Some(_)) => Err(D::Error::custom("`create` takes no `expect`: nothing is there yet")),
        }
    }
}

pub(super) mod write {
    use super::*;

    type Held = (Locator, Vec<u8>, Option<Version>);

    pub(in super::super) fn serialize<S: Serializer>(
        path: &Locator,
        bytes: &[u8],
        expect: &Option<Version>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let (content, content_base64) = content::told(bytes.to_vec());
        Wire { path: path.clone(), content, content_base64, expect: expect.clone() }.serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Held, D::Error> {
        let mut wire = Wire::deserialize(from)?;
        let bytes = wire.bytes()?;
        Ok((wire.path, bytes, wire.expect))
    }
}
