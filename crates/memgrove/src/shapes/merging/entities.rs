//! How two copies of an entity become one: by the union of observations, relations and tags.

use super::{Texts, united};
use crate::locator::Locator;
use crate::shapes::entities::{Document, Entity};

pub(super) fn fits(at: &Locator) -> bool {
    at.name().ends_with(".md") && at.parts().any(|part| part == "entities")
}

/// Returns one file with what either copy knows; `None` if both have changed other text.
pub(super) fn merge(texts: &Texts<'_>) -> Option<String> {
    let (ours, theirs) = (Side::of(texts.ours), Side::of(texts.theirs));
    let base = texts.base.map(Side::of);
    let (mine, yours) = (&ours.entity, &theirs.entity);
    if ours.document.is_ordinary() || theirs.document.is_ordinary() || mine.name != yours.name {
        return None;
    }
    let was = base.as_ref().map(|base| base.entity.clone()).unwrap_or_default();
    let (observations, relations, tags) = (
        united(&was.observations, &mine.observations, &yours.observations),
        united(&was.relations, &mine.relations, &yours.relations),
        united(&was.tags, &mine.tags, &yours.tags),
    );
    let updated = mine.updated.clone().max(yours.updated.clone());
    let created = match (mine.created.clone(), yours.created.clone()) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    // Other text is taken whole from the side that changed it; if both did, lines are merged instead.
    let mut document = match &base {
        _ if ours.prose == theirs.prose => ours.document,
        Some(base) if theirs.prose == base.prose => ours.document,
        Some(base) if ours.prose == base.prose => theirs.document,
        Some(_) => return None,
        None if ours.holds(&theirs) => ours.document,
        None if theirs.holds(&ours) => theirs.document,
        None => return None,
    };
    let kept = document.entity("", "");
    document.update(&Entity { observations, relations, tags, updated, created, ..kept });
    Some(document.print())
}

/// One of the two copies.
struct Side {
    document: Document,
    entity: Entity,
    /// The lines that are neither observations, relations, tags, times, nor the headings of these.
    prose: Vec<String>,
}

impl Side {
    fn of(text: &str) -> Self {
        let document = Document::parse(text);
        let entity = document.entity("", "");
        let mut rest = document.clone();
        rest.update(&Entity { name: entity.name.clone(), kind: entity.kind.clone(), ..Entity::default() });
        let is_prose =
            |line: &&str| !line.trim().is_empty() && !["## Observations", "## Relations"].contains(line);
        let prose = rest.print().lines().filter(is_prose).map(str::to_owned).collect();
        Side { document, entity, prose }
    }

    /// Whether it has every line of another, in the same order.
    fn holds(&self, other: &Side) -> bool {
        let mut lines = self.prose.iter();
        other.prose.iter().all(|wanted| lines.any(|line| line == wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(base: Option<&str>, ours: &str, theirs: &str, wanted: Option<&str>) {
        let file = |text: &str| {
            let (prose, facts) = text.split_once('|').unwrap_or((text, ""));
            let lines =
                |text: &'_ str| text.split(',').filter(|line| !line.is_empty()).map(str::to_owned).collect();
            let (prose, facts): (Vec<String>, Vec<String>) = (lines(prose), lines(facts));
            let prose: String = prose.iter().map(|line| format!("{line}\n")).collect();
            let facts: String =
                (1..).zip(&facts).map(|(number, fact)| format!("{number}. {fact}\n")).collect();
            format!("# Entity: Ada\n**Type:** person\n{prose}\n## Observations\n{facts}")
        };
        let (base, ours, theirs) = (base.map(file), file(ours), file(theirs));
        let merged = merge(&Texts { base: base.as_deref(), ours: &ours, theirs: &theirs });
        assert_eq!(merged, wanted.map(file));
    }

    #[test]
    fn prose_is_compared_by_whole_lines_and_stays_removed() {
        check(None, "likes green tea", "tea", None);
        check(Some("x"), "x,likes green tea", "x,tea", None);
        check(Some("x,y|a"), "x,y|a,b", "x|a,c", Some("x|a,b,c"));
        check(Some("x,y|a"), "x|a,b", "x,y|a,c", Some("x|a,b,c"));
        check(Some("x|a"), "x|a,b", "x,y|c", Some("x,y|b,c"));
        check(None, "x|a", "x,y|b", Some("x,y|a,b"));
        check(None, "x,y|a", "y|b", Some("x,y|a,b"));
        check(None, "x,y|a", "y,x|b", None);
    }
}
