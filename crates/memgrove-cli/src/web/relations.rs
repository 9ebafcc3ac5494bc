//! How a thing stands to others: the list beside an entity or a node.

use maud::{Markup, html};

use super::frame::{at_base, base};
use crate::http::Call;

/// The most relations that are shown beside one thing.
pub(super) const RELATIONS_MAX: usize = 100;

/// Which end of a relation the thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// It starts here.
    Out,
    /// It ends here.
    In,
    /// It ends here, or at another thing of the same name.
    Perhaps,
}

/// One relation, seen from one of its ends.
#[derive(Debug)]
pub(super) struct Relation {
    pub(super) way: Way,
    pub(super) kind: String,
    /// What is told of the relation itself, if anything is.
    pub(super) told_at: Option<String>,
    /// The other end, and its place if it is known.
    pub(super) other: String,
    pub(super) place: Option<String>,
}

/// Relations as a list of links.
pub(super) fn shown(call: &Call, relations: &[Relation], total: usize) -> Markup {
    let base = base(call);
    let read = |at: &str| at_base(&base, "/read", &[("at", at)]);
    let kind = |relation: &Relation| {
        html! {
            @match &relation.told_at {
                Some(at) => { a.dim href=(read(at)) { (relation.kind) } }
                None => { span.dim { (relation.kind) } }
            }
        }
    };
    html! {
        @if !relations.is_empty() {
            aside.relations aria-label="Relations" {
                h2 { "Relations" }
                ul {
                    @for relation in relations {
                        li {
                            @if relation.way == Way::Out { (kind(relation)) " " }
                            @match &relation.place {
                                Some(at) => { a href=(read(at)) { (relation.other) } }
                                None => { span.missing title="not known" { (relation.other) } }
                            }
                            @match relation.way {
                                Way::Out => {}
                                Way::In => { " " (kind(relation)) span.dim { " this" } }
                                Way::Perhaps => { " " (kind(relation)) span.dim { " this, or another of its name" } }
                            }
                        }
                    }
                    @if total > relations.len() { li.dim { "and " (total - relations.len()) " more" } }
                }
            }
        }
    }
}
